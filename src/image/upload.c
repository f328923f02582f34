/*
 * upload - sends an image to a registry; see upload.h.
 *
 * Theory of operation. Each exchange is a registryrequest, which logs in and tries again. The
 * address of an upload is the registry's word (Location): relative ones count from the registry,
 * and no other host gets our login (image/registryrequest). After a piece that broke off the
 * address is asked for the position; when it knows nothing any more, the upload begins again.
 *
 * Hostile input: every answer. An address is https, or http where the registry itself is.
 */
#include "image/upload.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "image/registryrequest.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STARTS_MAX 3u /* of one blob's upload */

/* One blob on its way. */
struct sending {
	struct registry *registry;
	const struct upload_blob *blob;
	char *address; /* of the upload */
	uint64_t done_bytes;
};

static void url_freep(CURLU **url)
{
	curl_url_cleanup(*url);
}

static void curl_textp(char **text)
{
	curl_free(*text);
}

static struct endpoint *endpoint_of(struct registry *r)
{
	struct registryrequest_site *site = registry_get_site(r);

	return &site->endpoints[site->endpoint_count - 1];
}

/* Runs a request until it arrived or failed for good. */
static enum registryrequest_verdict ask(struct registry *r, struct registryrequest *a,
					const struct registryrequest_options *o, struct err *e)
{
	enum registryrequest_verdict verdict;

	do {
		if (registry_pause_until(r, a->not_before_ms, e) < 0 ||
		    registryrequest_start(a, o, e) < 0 || httptransfer_wait(a->exchange, e) < 0)
			return REGISTRYREQUEST_FAILED;
		verdict = registryrequest_judge(a, e);
	} while (verdict == REGISTRYREQUEST_AGAIN);
	return verdict;
}

/* ---- addresses ---- */

/* An address for the next exchange: what the answer names, seen from the registry. */
static int take_address(struct sending *s, const struct registryrequest *a, struct err *e)
{
	const struct endpoint *p = endpoint_of(s->registry);
	const char *location = httptransfer_get_header(a->exchange, "Location", 0);
	CLEANUP(url_freep) CURLU *url = curl_url();
	CLEANUP(curl_textp) char *text = NULL;
	CLEANUP(curl_textp) char *scheme = NULL;

	if (!location)
		return s->address ? 0
				  : err_set(e, ERR_REMOTE, "%s does not say where %s goes to",
					    p->name, a->what);
	if (!url || strlen(location) > UPLOAD_ADDRESS_MAX_BYTES ||
	    curl_url_set(url, CURLUPART_URL, p->base, 0) ||
	    curl_url_set(url, CURLUPART_URL, location, 0) ||
	    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) ||
	    curl_url_get(url, CURLUPART_URL, &text, 0))
		return err_set(e, ERR_REMOTE, "%s names no address for %s", p->name, a->what);
	if (strcmp(scheme, "https") != 0 && !(p->is_plain && strcmp(scheme, "http") == 0))
		return err_set(e, ERR_REMOTE, "%s wants %s sent by %s, which is not safe", p->name,
			       a->what, scheme);
	free(s->address);
	s->address = mem_dup(text);
	return 0;
}

static int add_digest(const struct sending *s, char **ret, struct err *e)
{
	cleanup_free char *pair = mem_format("digest=%s", s->blob->digest);
	CLEANUP(url_freep) CURLU *url = curl_url();
	CLEANUP(curl_textp) char *text = NULL;

	if (!url || curl_url_set(url, CURLUPART_URL, s->address, 0) ||
	    curl_url_set(url, CURLUPART_QUERY, pair, CURLU_APPENDQUERY) ||
	    curl_url_get(url, CURLUPART_URL, &text, 0))
		return err_set(e, ERR_REMOTE, "the address of an upload is none");
	*ret = mem_dup(text);
	return 0;
}

/* ---- steps ---- */

/* 1: the registry has it; 0: not. */
static int is_there(struct sending *s, struct err *e)
{
	cleanup_free char *suffix = mem_format("blobs/%s", s->blob->digest);
	cleanup_free char *what = mem_format("the blob %s", s->blob->digest);
	CLEANUP(registryrequest_done) struct registryrequest a = { 0 };
	const struct registryrequest_options o = { .method = "HEAD", .body_fd = -1 };

	registryrequest_init(&a, registry_get_site(s->registry), suffix, what);
	if (ask(s->registry, &a, &o, e) == REGISTRYREQUEST_ARRIVED)
		return 1;
	return e->code == ERR_NOT_FOUND ? 0 : -1;
}

/* Begins an upload. 1: it was mounted from another repository. */
static int begin(struct sending *s, struct err *e)
{
	cleanup_free char *suffix = s->blob->from ? mem_format("blobs/uploads/?mount=%s&from=%s",
							       s->blob->digest, s->blob->from)
						  : mem_dup("blobs/uploads/");
	cleanup_free char *what = mem_format("an upload of %s", s->blob->digest);
	CLEANUP(registryrequest_done) struct registryrequest a = { 0 };
	const struct registryrequest_options o = { .method = "POST", .body_fd = -1 };

	free(take_ptr(s->address));
	s->done_bytes = 0;
	registryrequest_init(&a, registry_get_site(s->registry), suffix, what);
	if (ask(s->registry, &a, &o, e) != REGISTRYREQUEST_ARRIVED)
		return -1;
	if (a.exchange->status == 201)
		return 1;
	return take_address(s, &a, e);
}

static void tell(const struct sending *s)
{
	if (s->blob->on_progress)
		s->blob->on_progress(s->blob->context, s->done_bytes);
}

/* One attempt at the next piece: the verdict is about it alone. */
static enum registryrequest_verdict send_piece(struct sending *s, struct registryrequest *a,
					       struct err *e)
{
	uint64_t left = s->blob->size_bytes - s->done_bytes;
	uint64_t len = left < UPLOAD_PIECE_BYTES ? left : UPLOAD_PIECE_BYTES;
	cleanup_free char *range = mem_format("Content-Range: %" PRIu64 "-%" PRIu64, s->done_bytes,
					      s->done_bytes + len - 1);
	const char *const fields[] = { "Content-Type: application/octet-stream", range, NULL };
	const struct registryrequest_options o = { .method = "PATCH",
						   .body_fd = s->blob->fd,
						   .body_from = s->done_bytes,
						   .body_bytes = len,
						   .fields = fields,
						   .address = s->address };
	enum registryrequest_verdict verdict;

	if (registry_pause_until(s->registry, a->not_before_ms, e) < 0 ||
	    registryrequest_start(a, &o, e) < 0 || httptransfer_wait(a->exchange, e) < 0)
		return REGISTRYREQUEST_FAILED;
	verdict = registryrequest_judge(a, e);
	if (verdict != REGISTRYREQUEST_ARRIVED)
		return verdict;
	s->done_bytes += len;
	registryrequest_note_progress(a);
	tell(s);
	return take_address(s, a, e) < 0 ? REGISTRYREQUEST_FAILED : REGISTRYREQUEST_ARRIVED;
}

/* How far did the registry get? 1: it knows nothing of this upload. */
static int find_position(struct sending *s, struct err *e)
{
	CLEANUP(registryrequest_done) struct registryrequest a = { 0 };
	const struct registryrequest_options o = { .address = s->address, .body_fd = -1 };
	enum registryrequest_verdict verdict;
	unsigned long long last = 0;
	const char *range;
	long status;

	registryrequest_init(&a, registry_get_site(s->registry), "", "an upload");
	verdict = ask(s->registry, &a, &o, e);
	status = a.exchange ? a.exchange->status : 0;
	if (status == 404)
		return 1;
	if (verdict != REGISTRYREQUEST_ARRIVED && status != 204)
		return -1;
	range = httptransfer_get_header(a.exchange, "Range", 0);
	if (range && strrchr(range, '-'))
		last = strtoull(strrchr(range, '-') + 1, NULL, 10);
	/* "0-0" is nothing, or one byte: then that is sent again */
	s->done_bytes = last ? last + 1 : 0;
	if (s->done_bytes > s->blob->size_bytes)
		return 1;
	return take_address(s, &a, e);
}

static int send_all(struct sending *s, struct err *e)
{
	cleanup_free char *what = mem_format("a part of %s", s->blob->digest);
	CLEANUP(registryrequest_done) struct registryrequest a = { 0 };

	registryrequest_init(&a, registry_get_site(s->registry), "", what);
	while (s->done_bytes < s->blob->size_bytes) {
		enum registryrequest_verdict verdict = send_piece(s, &a, e);
		int r;

		if (verdict == REGISTRYREQUEST_ARRIVED)
			continue;
		if (verdict == REGISTRYREQUEST_FAILED) {
			long status = a.exchange ? a.exchange->status : 0;

			/* 404: forgotten; 416: it is elsewhere than we think */
			if (status != 404 && status != 416)
				return -1;
			if (status == 404)
				return 1;
		}
		if (registry_pause_until(s->registry, a.not_before_ms, e) < 0)
			return -1;
		r = find_position(s, e);
		if (r != 0)
			return r;
	}
	return 0;
}

/* The registry compares the digest; then the blob is there. 1: it has forgotten the upload. */
static int confirm(struct sending *s, struct err *e)
{
	cleanup_free char *what = mem_format("the end of %s", s->blob->digest);
	CLEANUP(registryrequest_done) struct registryrequest a = { 0 };
	cleanup_free char *address = NULL;
	struct registryrequest_options o = { .method = "PUT", .body_fd = -1 };

	if (add_digest(s, &address, e) < 0)
		return -1;
	o.address = address;
	registryrequest_init(&a, registry_get_site(s->registry), "", what);
	if (ask(s->registry, &a, &o, e) == REGISTRYREQUEST_ARRIVED)
		return 0;
	/* the answer to an attempt that succeeded may have been lost */
	if (e->code != ERR_NOT_FOUND)
		return -1;
	return is_there(s, e) == 1 ? 0 : 1;
}

int upload_blob(struct registry *r, const struct upload_blob *b, enum upload_outcome *ret,
		struct err *e)
{
	struct sending s = { .registry = r, .blob = b };
	int result = is_there(&s, e);

	*ret = UPLOAD_THERE;
	if (result != 0)
		return result < 0 ? -1 : 0;
	for (unsigned i = 0; i < STARTS_MAX; i++) {
		result = begin(&s, e);
		*ret = result == 1 ? UPLOAD_MOUNTED : UPLOAD_SENT;
		if (result != 0) {
			result = result < 0 ? -1 : 0;
			break;
		}
		result = send_all(&s, e);
		if (result == 0)
			result = confirm(&s, e);
		if (result <= 0)
			break;
		result = err_set(e, ERR_REMOTE, "%s forgets %s while it is sent",
				 endpoint_of(r)->name, b->digest);
	}
	free(s.address);
	return result;
}

int upload_manifest(struct registry *r, const char *name, const char *type, int fd,
		    uint64_t size_bytes, struct err *e)
{
	cleanup_free char *suffix = mem_format("manifests/%s", name);
	cleanup_free char *what = mem_format("the manifest '%s'", name);
	cleanup_free char *field = mem_format("Content-Type: %s", type);
	const char *const fields[] = { field, NULL };
	CLEANUP(registryrequest_done) struct registryrequest a = { 0 };
	const struct registryrequest_options o = {
		.method = "PUT", .body_fd = fd, .body_bytes = size_bytes, .fields = fields
	};

	registryrequest_init(&a, registry_get_site(r), suffix, what);
	return ask(r, &a, &o, e) == REGISTRYREQUEST_ARRIVED ? 0 : -1;
}
