/*
 * registry - client for pulling with the OCI distribution protocol; see registry.h.
 *
 * Theory of operation
 *
 * A struct registry is one repository: a list of endpoints, one transfer loop (httptransfer), and
 * for each manifest or blob one request (registryrequest) that knows when and where to retry. This
 * file turns answers into manifests and blobs.
 *
 * A blob is a job. Its existing file is first hashed (in pieces, so that ticks go on), then the
 * rest is requested with a Range. The answer decides: 206 continues, 200 starts the file over, 416
 * means that the file is not the beginning of this blob. When all bytes are there their digest is
 * checked; if it is wrong and some bytes existed before, the job starts over once. At most
 * REGISTRY_PARALLEL_MAX jobs are active, in order; a job that pauses keeps its slot, because the
 * cause of the pause would affect the next one too.
 *
 * Invariants. At any time a file holds the bytes received, in order from its start; nothing counts
 * as checked before its digest was compared. Docker-Content-Digest is never used.
 *
 * Hostile input: everything from the network. Sizes come from the manifest and bound the bodies;
 * httptransfer limits headers, redirects and time.
 */
#include "image/registry.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "image/registryrequest.h"
#include "image/digest.h"
#include "image/download.h"
#include "image/endpoint.h"
#include "image/httptransfer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CATCH_UP_BYTES (8u << 20) /* hashed between two ticks */
#define WAIT_MS 1000u             /* maximum wait of a turn */

static_assert(REGISTRY_WATCHED_MAX == HTTPTRANSFER_WATCHED_MAX, "one list is the other");

static const char manifest_accept[] = MANIFEST_TYPE_OCI_INDEX
	", " MANIFEST_TYPE_OCI ", " MANIFEST_TYPE_DOCKER_LIST ", " MANIFEST_TYPE_DOCKER;

struct registry {
	struct registryrequest_site site;
	uint64_t started_ms, total_max_ms;
};

/* ---- endpoints ---- */

static int add_mirrors(struct registry *r, const char *const *mirrors, struct err *e)
{
	for (; mirrors && *mirrors; mirrors++) {
		if (endpoint_init_mirror(&r->site.endpoints[r->site.endpoint_count], *mirrors, e) <
		    0)
			return -1;
		r->site.endpoint_count++;
	}
	return 0;
}

static unsigned count_texts(const char *const *texts)
{
	unsigned count = 0;

	while (texts && texts[count])
		count++;
	return count;
}

int registry_new(const struct registry_options *o, struct registry **ret, struct err *e)
{
	CLEANUP(registry_freep) struct registry *r = mem_alloc(sizeof(*r));
	unsigned mirrors = count_texts(o->mirrors);

	if (mirrors > REGISTRY_MIRRORS_MAX)
		return err_set(e, ERR_LIMIT, "more than %u mirrors", REGISTRY_MIRRORS_MAX);
	r->site = (struct registryrequest_site){
		.loop = httptransfer_loop_new(),
		.endpoints = mem_alloc((mirrors + 1) * sizeof(*r->site.endpoints)),
		.host = o->reference->host,
		.path = o->reference->path,
		.scope = mem_format("repository:%s:pull%s", o->reference->path,
				    o->is_pushed_to ? ",push" : ""),
		.credentials = o->credentials,
		.is_insecure = o->is_insecure,
		.has_private_redirects = o->has_private_redirects,
		.connect_max_ms = o->connect_max_ms ? o->connect_max_ms : REGISTRY_CONNECT_MAX_MS,
		.stall_max_s = o->stall_max_s ? o->stall_max_s : REGISTRY_STALL_MAX_S,
	};
	r->started_ms = clock_now_ms();
	r->total_max_ms = o->total_max_ms;
	if (o->answer_max_ms || o->total_max_ms) {
		uint64_t max_ms = o->answer_max_ms ? o->answer_max_ms : o->total_max_ms;

		httptransfer_loop_set_deadline(r->site.loop, r->started_ms + max_ms, max_ms);
	}
	if (add_mirrors(r, o->mirrors, e) < 0)
		return -1;
	endpoint_init_registry(&r->site.endpoints[r->site.endpoint_count++], o->reference->host,
			       o->is_insecure);
	*ret = take_ptr(r);
	return 0;
}

void registry_has_answered(struct registry *r)
{
	httptransfer_loop_set_deadline(r->site.loop,
				       r->total_max_ms ? r->started_ms + r->total_max_ms : 0,
				       r->total_max_ms);
}

void registry_free(struct registry *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->site.endpoint_count; i++)
		endpoint_done(&r->site.endpoints[i]);
	free(r->site.endpoints);
	free(r->site.scope);
	httptransfer_loop_free(r->site.loop);
	free(r);
}

void registry_freep(struct registry **r)
{
	registry_free(*r);
	*r = NULL;
}

/* ---- manifests ---- */

struct manifest_answer {
	const struct registryrequest *ask;
	struct buf bytes;
};

static void manifest_answer_done(struct manifest_answer *m)
{
	buf_done(&m->bytes);
}

static int on_manifest_bytes(void *context, const char *bytes, size_t len, struct err *e)
{
	struct manifest_answer *m = context;

	buf_add(&m->bytes, bytes, len);
	if (m->bytes.is_cut)
		return err_set(e, ERR_REMOTE, "%s sends more than %u bytes for %s",
			       registryrequest_endpoint_name(m->ask), MANIFEST_MAX_BYTES,
			       m->ask->what);
	return 0;
}

struct registryrequest_site *registry_get_site(struct registry *r)
{
	return &r->site;
}

int registry_pause_until(struct registry *r, uint64_t not_before_ms, struct err *e)
{
	uint64_t now_ms;

	while ((now_ms = clock_now_ms()) < not_before_ms)
		if (httptransfer_loop_turn(r->site.loop, not_before_ms - now_ms, e) < 0)
			return -1;
	return 0;
}

static enum registryrequest_verdict
check_manifest(struct registryrequest *a, const struct manifest_answer *m, const char *wanted,
	       char found[REFERENCE_DIGEST_MAX_BYTES], struct err *e)
{
	digest_of(buf_text(&m->bytes), m->bytes.len, found);
	if (!reference_is_digest(wanted) || strcmp(found, wanted) == 0)
		return REGISTRYREQUEST_ARRIVED;
	if (registryrequest_leave_mirror(a))
		return REGISTRYREQUEST_AGAIN;
	(void)err_set(e, ERR_REMOTE, "%s sends other bytes for %s: their digest is %s",
		      registryrequest_endpoint_name(a), a->what, found);
	return REGISTRYREQUEST_FAILED;
}

static enum registryrequest_verdict try_manifest(struct registry *r, struct registryrequest *a,
						 const char *name, struct manifest_answer *m,
						 char found[REFERENCE_DIGEST_MAX_BYTES],
						 struct err *e)
{
	struct registryrequest_options o = {
		.accept = manifest_accept,
		.total_max_ms = REGISTRY_MANIFEST_MAX_MS,
		.on_body = on_manifest_bytes,
		.context = m,
	};
	enum registryrequest_verdict verdict;

	buf_done(&m->bytes);
	if (registry_pause_until(r, a->not_before_ms, e) < 0 ||
	    registryrequest_start(a, &o, e) < 0 || httptransfer_wait(a->exchange, e) < 0)
		return REGISTRYREQUEST_FAILED;
	verdict = registryrequest_judge(a, e);
	if (verdict == REGISTRYREQUEST_STOPPED)
		return registryrequest_leave_mirror(a) ? REGISTRYREQUEST_AGAIN
						       : REGISTRYREQUEST_FAILED;
	if (verdict == REGISTRYREQUEST_ARRIVED)
		return check_manifest(a, m, name, found, e);
	return verdict;
}

int registry_get_manifest(struct registry *r, const char *name, struct buf *ret_bytes,
			  char ret_type[MANIFEST_TYPE_MAX_BYTES],
			  char ret_digest[REFERENCE_DIGEST_MAX_BYTES], struct err *e)
{
	CLEANUP(registryrequest_done) struct registryrequest a = { 0 };
	CLEANUP(manifest_answer_done) struct manifest_answer m = { .ask = &a };
	cleanup_free char *suffix = mem_format("manifests/%s", name);
	cleanup_free char *what = reference_is_digest(name) ? mem_format("the manifest %s", name)
							    : mem_format("the tag '%s'", name);
	char found[REFERENCE_DIGEST_MAX_BYTES];
	enum registryrequest_verdict verdict;
	const char *type;

	buf_init(&m.bytes, MANIFEST_MAX_BYTES);
	registryrequest_init(&a, &r->site, suffix, what);
	do
		verdict = try_manifest(r, &a, name, &m, found, e);
	while (verdict == REGISTRYREQUEST_AGAIN);
	if (verdict != REGISTRYREQUEST_ARRIVED)
		return -1;
	type = httptransfer_get_header(a.exchange, "Content-Type", 0);
	(void)snprintf(ret_type, MANIFEST_TYPE_MAX_BYTES, "%s", type ? type : "");
	memcpy(ret_digest, found, sizeof(found));
	buf_done(ret_bytes);
	*ret_bytes = m.bytes;
	m.bytes = (struct buf){ 0 };
	return 0;
}

/* ---- one blob ---- */

enum job_phase { JOB_NEW, JOB_CATCHING_UP, JOB_READY, JOB_MOVING, JOB_DONE };

struct job {
	struct registry_blob *blob;
	enum job_phase phase;
	struct registryrequest ask;
	struct download download;
	bool has_body;          /* of the current transfer */
	bool is_wrong;          /* on_body got bytes that cannot belong to this blob */
	bool has_started_over;  /* allowed once */
	uint64_t progress_from; /* highest position that counted as progress */
};

static void job_done(struct job *j)
{
	registryrequest_done(&j->ask);
	download_done(&j->download);
}

static int job_init(struct job *j, struct registry *r, struct err *e)
{
	cleanup_free char *suffix = mem_format("blobs/%s", j->blob->digest);
	cleanup_free char *what = mem_format("the blob %s", j->blob->digest);

	registryrequest_init(&j->ask, &r->site, suffix, what);
	j->phase = JOB_CATCHING_UP;
	return download_init(&j->download, j->blob->fd, j->blob->digest, j->blob->size_bytes, e);
}

/* A 206 must begin at our position. */
static bool is_range_right(const struct job *j)
{
	const char *range = httptransfer_get_header(j->ask.exchange, "Content-Range", 0);
	char expected[64];

	(void)snprintf(expected, sizeof(expected), "bytes %" PRIu64 "-", j->download.done_bytes);
	return range && strncmp(range, expected, strlen(expected)) == 0;
}

static int on_first_bytes(struct job *j, struct err *e)
{
	long status = httptransfer_get_status(j->ask.exchange);

	j->has_body = true;
	if (status == 206 && !is_range_right(j)) {
		j->is_wrong = true;
		return err_set(e, ERR_REMOTE, "%s sends another part of %s than was asked for",
			       registryrequest_endpoint_name(&j->ask), j->ask.what);
	}
	if (status == 200 && j->download.done_bytes > 0)
		return download_restart(&j->download, e);
	return 0;
}

static int on_blob_bytes(void *context, const char *bytes, size_t len, struct err *e)
{
	struct job *j = context;

	if (!j->has_body && on_first_bytes(j, e) < 0)
		return -1;
	if (download_add(&j->download, bytes, len, e) < 0) {
		j->is_wrong = e->code == ERR_REMOTE;
		return j->is_wrong ? err_wrap(e, "%s", registryrequest_endpoint_name(&j->ask)) : -1;
	}
	j->blob->done_bytes = j->download.done_bytes;
	return 0;
}

static int start_moving(struct job *j, struct err *e)
{
	struct registryrequest_options o = {
		.range_from = j->download.done_bytes,
		.on_body = on_blob_bytes,
		.context = j,
	};

	j->has_body = false;
	j->is_wrong = false;
	j->download.is_pieced = j->download.is_pieced || o.range_from > 0;
	j->phase = JOB_MOVING;
	j->blob->state = REGISTRY_MOVING;
	return registryrequest_start(&j->ask, &o, e);
}

/*
 * The bytes are not this blob's; `e` has the reason. If they came from a mirror, or partly existed
 * before, the job starts over with an empty file.
 */
static int start_over(struct job *j, struct err *e)
{
	struct err cause = *e;
	bool can_again = registryrequest_leave_mirror(&j->ask);

	if (!can_again && j->download.is_pieced && !j->has_started_over)
		can_again = j->has_started_over = true;
	if (download_restart(&j->download, e) < 0)
		return -1;
	j->progress_from = 0;
	j->blob->done_bytes = 0;
	j->phase = JOB_READY;
	j->blob->state = REGISTRY_WAITING;
	if (can_again)
		return 0;
	*e = cause;
	return -1;
}

static int finish_job(struct job *j, struct err *e)
{
	bool is_right = false;

	if (download_check(&j->download, &is_right, e) < 0)
		return -1;
	if (!is_right) {
		(void)err_set(e, ERR_REMOTE, "%s sends other bytes for %s: their digest is wrong",
			      registryrequest_endpoint_name(&j->ask), j->ask.what);
		return start_over(j, e);
	}
	j->phase = JOB_DONE;
	j->blob->state = REGISTRY_CHECKED;
	return 0;
}

/* Hashes the bytes that existed before; only the final digest verifies them. */
static int catch_up(struct job *j, struct err *e)
{
	bool is_through = false;

	if (download_catch_up(&j->download, CATCH_UP_BYTES, &is_through, e) < 0)
		return -1;
	j->blob->done_bytes = j->progress_from = j->download.done_bytes;
	if (!is_through)
		return 0;
	j->phase = JOB_READY;
	if (j->download.done_bytes == j->download.size_bytes)
		return finish_job(j, e);
	return 0;
}

/* ---- answers for a blob ---- */

static void note_progress(struct job *j)
{
	if (j->download.done_bytes < j->progress_from + REGISTRY_PROGRESS_MIN_BYTES)
		return;
	registryrequest_note_progress(&j->ask);
	j->progress_from = j->download.done_bytes;
}

static int apply_verdict(struct job *j, enum registryrequest_verdict verdict)
{
	if (verdict != REGISTRYREQUEST_AGAIN)
		return -1;
	j->phase = JOB_READY;
	j->blob->state = j->ask.not_before_ms > clock_now_ms() ? REGISTRY_PAUSED : REGISTRY_WAITING;
	return 0;
}

/* A complete answer but an incomplete blob: a server with a wrong length, or a cut that looks like
 * an end. */
static int settle_short(struct job *j, struct err *e)
{
	(void)err_set(e, ERR_REMOTE, "%s ends %s after %" PRIu64 " of its %" PRIu64 " bytes",
		      registryrequest_endpoint_name(&j->ask), j->ask.what, j->download.done_bytes,
		      j->download.size_bytes);
	return apply_verdict(j, registryrequest_try_again(&j->ask, e));
}

static int settle(struct job *j, struct err *e)
{
	long status = j->ask.exchange->status;
	enum registryrequest_verdict verdict;

	note_progress(j);
	/* all bytes are there, however the transfer ended */
	if (!j->is_wrong && j->has_body && j->download.done_bytes == j->download.size_bytes)
		return finish_job(j, e);
	verdict = registryrequest_judge(&j->ask, e);
	if (verdict == REGISTRYREQUEST_ARRIVED)
		return settle_short(j, e);
	if (verdict == REGISTRYREQUEST_STOPPED)
		return j->is_wrong ? start_over(j, e) : -1;
	if (verdict == REGISTRYREQUEST_FAILED && status == 416 && j->download.done_bytes > 0)
		return start_over(j, e);
	return apply_verdict(j, verdict);
}

/* ---- all blobs ---- */

struct fetch {
	struct registry *registry;
	struct job *jobs;
	unsigned count;
	const struct registry_events *events;
};

static void fetch_done(struct fetch *f)
{
	httptransfer_loop_set_hooks(f->registry->site.loop, NULL);
	for (unsigned i = 0; i < f->count; i++)
		job_done(&f->jobs[i]);
	free(f->jobs);
}

/* Executes the next step of a job. *ret_wait_ms: nothing to do for so long. */
static int advance(struct fetch *f, struct job *j, uint64_t *ret_wait_ms, struct err *e)
{
	uint64_t now_ms = clock_now_ms();

	*ret_wait_ms = 0;
	switch (j->phase) {
	case JOB_NEW:
		return job_init(j, f->registry, e);
	case JOB_CATCHING_UP:
		return catch_up(j, e);
	case JOB_READY:
		if (j->ask.not_before_ms <= now_ms)
			return start_moving(j, e);
		*ret_wait_ms = j->ask.not_before_ms - now_ms;
		return 0;
	case JOB_MOVING:
		if (j->ask.exchange->is_done)
			return settle(j, e);
		*ret_wait_ms = WAIT_MS;
		return 0;
	case JOB_DONE:
		break;
	}
	*ret_wait_ms = WAIT_MS;
	return 0;
}

static int advance_one(struct fetch *f, unsigned index, uint64_t *ret_wait_ms, struct err *e)
{
	struct job *j = &f->jobs[index];

	if (advance(f, j, ret_wait_ms, e) < 0)
		return -1;
	if (j->phase != JOB_DONE)
		return 0;
	job_done(j);
	if (f->events && f->events->on_blob)
		return f->events->on_blob(f->events->context, index, e);
	return 0;
}

/* Returns the number of active jobs, at most REGISTRY_PARALLEL_MAX. */
static int advance_all(struct fetch *f, uint64_t *ret_wait_ms, struct err *e)
{
	unsigned active = 0;

	*ret_wait_ms = WAIT_MS;
	for (unsigned i = 0; i < f->count && active < REGISTRY_PARALLEL_MAX; i++) {
		uint64_t wait_ms = 0;

		if (f->jobs[i].phase == JOB_DONE)
			continue;
		if (advance_one(f, i, &wait_ms, e) < 0)
			return -1;
		active++;
		if (wait_ms < *ret_wait_ms)
			*ret_wait_ms = wait_ms;
	}
	return (int)active;
}

static int run(struct fetch *f, struct err *e)
{
	uint64_t wait_ms = 0;
	int active;

	while ((active = advance_all(f, &wait_ms, e)) > 0)
		if (httptransfer_loop_turn(f->registry->site.loop, wait_ms, e) < 0)
			return -1;
	return active;
}

/* Saves partial files for the next attempt. Errors are ignored: the first one is reported. */
static void keep_beginnings(struct fetch *f)
{
	struct err ignored;

	for (unsigned i = 0; i < f->count; i++)
		if (f->jobs[i].phase != JOB_NEW && f->jobs[i].phase != JOB_DONE)
			(void)!download_flush(&f->jobs[i].download, &ignored);
}

int registry_get_blobs(struct registry *r, struct registry_blob *blobs, unsigned count,
		       const struct registry_events *events, struct err *e)
{
	CLEANUP(fetch_done) struct fetch f = { .registry = r, .count = count, .events = events };

	f.jobs = mem_alloc(count * sizeof(*f.jobs));
	for (unsigned i = 0; i < count; i++) {
		f.jobs[i].blob = &blobs[i];
		blobs[i].state = REGISTRY_WAITING;
		blobs[i].done_bytes = 0;
	}
	if (events)
		httptransfer_loop_set_hooks(r->site.loop,
					    &(struct httptransfer_hooks){
						    .context = events->context,
						    .on_tick = events->on_tick,
						    .get_watched = events->get_watched,
					    });
	if (run(&f, e) == 0)
		return 0;
	keep_beginnings(&f);
	return -1;
}
