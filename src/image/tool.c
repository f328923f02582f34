/*
 * tool - the program agentkernel-image: network, archives and digests; see tool.h.
 *
 * The launcher starts it with the store, the user namespace of images and the caller's streams; it
 * starts itself again as a worker (image/layerworker) to access an image's own files.
 */
#include "image/tool.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/title.h"
#include "image/bundle.h"
#include "image/bundlesave.h"
#include "image/compose.h"
#include "image/describe.h"
#include "image/progress.h"
#include "image/pull.h"
#include "image/push.h"
#include "image/store.h"
#include "image/storegc.h"
#include "image/transfer.h"
#include "image/layerworker.h"
#include "image/layerworkerops.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL_OUTPUT_MAX_BYTES (1u << 20)

/* The parsed arguments of a request. */
struct request {
	const char *store, *owners, *file, *progress, *from, *wait;
	bool is_json, is_quiet, is_all, is_dry;
	struct reference references[TOOL_REFERENCES_MAX];
	unsigned reference_count;
};

static int read_flag(const char *word, struct request *q)
{
	if (strcmp(word, "json=yes") == 0)
		q->is_json = true;
	else if (strcmp(word, "quiet=yes") == 0)
		q->is_quiet = true;
	else if (strcmp(word, "all=yes") == 0)
		q->is_all = true;
	else if (strcmp(word, "dry=yes") == 0)
		q->is_dry = true;
	else
		return -1;
	return 0;
}

static int read_word(const char *word, struct request *q, struct err *e)
{
	const struct {
		const char *key;
		const char **value;
	} texts[] = {
		{ "store=", &q->store },       { "owners=", &q->owners }, { "file=", &q->file },
		{ "progress=", &q->progress }, { "from=", &q->from },     { "wait=", &q->wait },
	};

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		size_t len = strlen(texts[i].key);

		if (strncmp(word, texts[i].key, len) != 0)
			continue;
		*texts[i].value = word + len;
		return 0;
	}
	if (strncmp(word, "reference=", strlen("reference=")) == 0) {
		if (q->reference_count == TOOL_REFERENCES_MAX)
			return err_set(e, ERR_LIMIT, "more than %u images at once",
				       TOOL_REFERENCES_MAX);
		return reference_parse(word + strlen("reference="),
				       &q->references[q->reference_count++], e);
	}
	if (read_flag(word, q) < 0)
		return err_set(e, ERR_INVALID, "unknown word '%s'", word);
	return 0;
}

static int read_words(char **words, struct request *q, struct err *e)
{
	*q = (struct request){ .progress = "auto", .from = "registry", .wait = "" };
	for (; *words; words++)
		if (read_word(*words, q, e) < 0)
			return -1;
	if (!q->store || !q->owners)
		return err_set(e, ERR_INVALID, "this program is started by agentkernel");
	return 0;
}

static int print(const struct buf *text, struct err *e)
{
	int r = text->len ? file_write_all(STDOUT_FILENO, text->bytes, text->len) : 0;

	if (r < 0)
		return err_sys(e, -r, "write the output");
	return 0;
}

static int userns(void)
{
	return fcntl(TOOL_USERNS_FD, F_GETFD) >= 0 ? TOOL_USERNS_FD : -1;
}

static int open_store(const struct request *q, enum store_lock lock, struct store *ret,
		      struct err *e)
{
	int r = store_open(q->store, q->owners, userns(), lock, STORE_NO_WAIT, ret, e);

	if (r == 0 || e->code != ERR_BUSY)
		return r;
	if (!q->is_quiet && !q->is_json)
		(void)fprintf(
			stderr,
			"agentkernel: waiting for another process that uses the image store\n");
	return store_open(q->store, q->owners, userns(), lock, STORE_WAIT, ret, e);
}

/*
 * Removes what a refused image added, so that the store is as before. A broken transfer is not a
 * refusal: its bytes are kept for the next attempt.
 */
static void forget_refused(const struct request *q, struct store *s, const struct err *why)
{
	struct storegc_result ignored_result;
	struct err ignored;

	if (why->code != ERR_INVALID && why->code != ERR_LIMIT && why->code != ERR_UNSUPPORTED)
		return;
	store_close(s);
	if (store_open(q->store, q->owners, userns(), STORE_TIDYING, STORE_NO_WAIT, s, &ignored) ==
	    0)
		(void)!storegc_run(s, STOREGC_RESUMABLE, &ignored_result, &ignored);
}

/* ---- operations ---- */

static int tell_pull(const struct request *q, const struct pull_result *r, struct progress *p,
		     struct err *e)
{
	char full[REFERENCE_MAX_BYTES + 1], name[REFERENCE_MAX_BYTES + 1];
	char amount[PARSE_FORMAT_MAX_BYTES];
	cleanup_buf struct buf out;
	struct json j;

	reference_format(&q->references[0], full);
	reference_format_short(&q->references[0], name);
	buf_init(&out, SMALL_OUTPUT_MAX_BYTES);
	if (q->is_json) {
		json_init(&j, &out);
		json_open_object(&j, NULL);
		json_add_text(&j, "reference", full);
		json_add_text(&j, "digest", r->digest);
		json_add_number(&j, "layers", r->layer_count);
		json_add_number(&j, "layers_fetched", r->fetched_count);
		json_add_number(&j, "bytes_fetched", (int64_t)r->fetched_bytes);
		json_add_bool(&j, "is_new", r->is_new);
		json_close_object(&j);
		buf_add_text(&out, "\n");
	} else if (q->is_quiet) {
		buf_addf(&out, "%s\n", full);
	} else {
		progress_say(p, "%s is %s: %u of %u layers fetched, %s", name,
			     r->is_new ? "here" : "up to date", r->fetched_count, r->layer_count,
			     parse_format_bytes(r->fetched_bytes, amount));
	}
	return print(&out, e);
}

static int do_pull(const struct request *q, struct err *e)
{
	CLEANUP(store_close) struct store s;
	CLEANUP(cleanup_freep) struct progress *p = mem_alloc(sizeof(*p));
	struct pull_result result;
	struct pull_options o = {
		.reference = &q->references[0],
		.from = strcmp(q->from, "registry") == 0 ? PULL_FROM_REGISTRY
			: strcmp(q->from, "store") == 0  ? PULL_FROM_STORE
							 : PULL_FROM_ANY,
		.has_short_wait = strcmp(q->wait, "short") == 0,
		.progress = p,
		.environ_list = environ,
	};

	store_init(&s);
	progress_init(p, q->is_json || q->is_quiet ? "none" : q->progress);
	if (q->reference_count != 1)
		return err_set(e, ERR_INVALID, "one image to pull is needed");
	if (open_store(q, STORE_SHARED, &s, e) < 0)
		return -1;
	if (pull_image(&s, &o, &result, e) < 0) {
		forget_refused(q, &s, e);
		return -1;
	}
	store_sync_later(&s);
	return tell_pull(q, &result, p, e);
}

static int tell_gc(const struct request *q, const struct storegc_result *r, struct err *e)
{
	char amount[PARSE_FORMAT_MAX_BYTES];
	cleanup_buf struct buf out;
	struct json j;

	buf_init(&out, SMALL_OUTPUT_MAX_BYTES);
	if (q->is_json) {
		json_init(&j, &out);
		json_open_object(&j, NULL);
		json_add_number(&j, "images", r->record_count);
		json_add_number(&j, "layers", r->layer_count);
		json_add_number(&j, "blobs", r->blob_count);
		json_add_number(&j, "bytes", (int64_t)r->blob_bytes);
		json_add_number(&j, "in_use", r->used_count);
		json_close_object(&j);
		buf_add_text(&out, "\n");
	} else if (!q->is_quiet) {
		buf_addf(&out, "%s: %u image%s, %u layer%s, %s of blobs\n",
			 q->is_dry ? "would be removed" : "removed", r->record_count,
			 r->record_count == 1 ? "" : "s", r->layer_count,
			 r->layer_count == 1 ? "" : "s", parse_format_bytes(r->blob_bytes, amount));
		if (r->used_count)
			buf_addf(&out, "%u image%s in use and stay%s\n", r->used_count,
				 r->used_count == 1 ? " is" : "s are",
				 r->used_count == 1 ? "s" : "");
	}
	return print(&out, e);
}

static int do_prune(const struct request *q, struct err *e)
{
	CLEANUP(store_close) struct store s;
	struct storegc_result result;
	unsigned flags = (q->is_all ? STOREGC_UNUSED : 0) | (q->is_dry ? STOREGC_DRY : 0);

	store_init(&s);
	if (open_store(q, STORE_ALONE, &s, e) < 0 || storegc_run(&s, flags, &result, e) < 0)
		return -1;
	return tell_gc(q, &result, e);
}

/* All names or none: checks that every name exists before anything is removed. */
static int do_remove(const struct request *q, struct err *e)
{
	CLEANUP(store_close) struct store s;
	struct storegc_result result;

	store_init(&s);
	if (open_store(q, STORE_ALONE, &s, e) < 0)
		return -1;
	for (unsigned i = 0; i < q->reference_count; i++) {
		CLEANUP(record_done) struct record r = { 0 };
		cleanup_fd int lock_fd = -1;

		if (store_get_record(&s, &q->references[i], &r, &lock_fd, e) < 0 &&
		    e->code == ERR_NOT_FOUND)
			return -1;
	}
	for (unsigned i = 0; i < q->reference_count; i++)
		if (store_remove_name(&s, &q->references[i], e) < 0)
			return -1;
	if (storegc_run(&s, 0, &result, e) < 0)
		return -1;
	return tell_gc(q, &result, e);
}

static int do_inspect(const struct request *q, struct err *e)
{
	CLEANUP(store_close) struct store s;
	cleanup_buf struct buf out;

	store_init(&s);
	buf_init(&out, DESCRIBE_MAX_BYTES);
	if (open_store(q, STORE_SHARED, &s, e) < 0 ||
	    describe_images(&s, q->references, q->reference_count, &out, e) < 0)
		return -1;
	return print(&out, e);
}

static int tell_names(const struct request *q, const struct bundle_names *names, struct err *e)
{
	char name[REFERENCE_MAX_BYTES + 1];
	cleanup_buf struct buf out;
	struct json j;

	buf_init(&out, SMALL_OUTPUT_MAX_BYTES);
	json_init(&j, &out);
	if (q->is_json)
		json_open_array(&j, NULL);
	for (unsigned i = 0; i < names->count; i++) {
		reference_format(&names->list[i], name);
		if (q->is_json)
			json_add_text(&j, NULL, name);
		else
			buf_addf(&out, "%s\n", name);
	}
	if (q->is_json) {
		json_close_array(&j);
		buf_add_text(&out, "\n");
	}
	return print(&out, e);
}

static int do_load(const struct request *q, struct err *e)
{
	CLEANUP(store_close) struct store s;
	CLEANUP(cleanup_freep) struct progress *p = mem_alloc(sizeof(*p));
	CLEANUP(cleanup_freep) struct bundle_names *names = mem_alloc(sizeof(*names));

	store_init(&s);
	progress_init(p, q->is_json || q->is_quiet ? "none" : q->progress);
	if (open_store(q, STORE_SHARED, &s, e) < 0)
		return -1;
	if (bundle_load(&s, q->file ? q->file : "-", q->reference_count ? &q->references[0] : NULL,
			p, names, e) < 0) {
		forget_refused(q, &s, e);
		return -1;
	}
	store_sync_later(&s);
	return tell_names(q, names, e);
}

static int do_import(const struct request *q, struct err *e)
{
	CLEANUP(store_close) struct store s;
	CLEANUP(cleanup_freep) struct progress *p = mem_alloc(sizeof(*p));
	CLEANUP(cleanup_freep) struct bundle_names *names = mem_alloc(sizeof(*names));

	store_init(&s);
	progress_init(p, q->is_json || q->is_quiet ? "none" : q->progress);
	if (q->reference_count != 1)
		return err_set(e, ERR_INVALID, "one name for the image is needed");
	if (open_store(q, STORE_SHARED, &s, e) < 0)
		return -1;
	if (bundle_import(&s, q->file ? q->file : "-", &q->references[0], p, e) < 0) {
		forget_refused(q, &s, e);
		return -1;
	}
	store_sync_later(&s);
	names->list[names->count++] = q->references[0];
	return tell_names(q, names, e);
}

static int do_save(const struct request *q, struct err *e)
{
	CLEANUP(store_close) struct store s;

	store_init(&s);
	if (open_store(q, STORE_SHARED, &s, e) < 0)
		return -1;
	return bundlesave_write(&s, q->references, q->reference_count, q->file ? q->file : "-", e);
}

static int tell_push(const struct request *q, const struct push_result *r, struct progress *p,
		     struct err *e)
{
	char full[REFERENCE_MAX_BYTES + 1], amount[PARSE_FORMAT_MAX_BYTES];
	cleanup_buf struct buf out;
	struct json j;

	reference_format(&q->references[0], full);
	buf_init(&out, SMALL_OUTPUT_MAX_BYTES);
	if (q->is_json) {
		json_init(&j, &out);
		json_open_object(&j, NULL);
		json_add_text(&j, "reference", full);
		json_add_text(&j, "digest", r->digest);
		json_add_number(&j, "layers", r->layer_count);
		json_add_number(&j, "layers_sent", r->sent_count);
		json_add_number(&j, "layers_mounted", r->mounted_count);
		json_add_number(&j, "bytes_sent", (int64_t)r->sent_bytes);
		json_close_object(&j);
		buf_add_text(&out, "\n");
	} else {
		if (!q->is_quiet)
			progress_say(p, "%u of %u layers sent, %u mounted, %s", r->sent_count,
				     r->layer_count, r->mounted_count,
				     parse_format_bytes(r->sent_bytes, amount));
		buf_addf(&out, "%s\n", r->digest);
	}
	return print(&out, e);
}

static int do_push(const struct request *q, struct err *e)
{
	CLEANUP(store_close) struct store s;
	CLEANUP(cleanup_freep) struct progress *p = mem_alloc(sizeof(*p));
	struct push_result result;
	struct push_options o = { .reference = &q->references[0],
				  .progress = p,
				  .environ_list = environ };

	store_init(&s);
	progress_init(p, q->is_json || q->is_quiet ? "none" : q->progress);
	if (q->reference_count != 1)
		return err_set(e, ERR_INVALID, "one image to push is needed");
	if (open_store(q, STORE_SHARED, &s, e) < 0 || push_image(&s, &o, &result, e) < 0)
		return -1;
	return tell_push(q, &result, p, e);
}

/* Of layers that a build has put into the store; the description is on stdin. */
static int do_compose(const struct request *q, struct err *e)
{
	CLEANUP(store_close) struct store s;
	char digest[REFERENCE_DIGEST_MAX_BYTES], id[RECORD_ID_BYTES + 1];
	cleanup_free char *bytes = NULL;
	cleanup_buf struct buf out;
	size_t len = 0;
	int r;

	store_init(&s);
	buf_init(&out, SMALL_OUTPUT_MAX_BYTES);
	r = file_read_fd(STDIN_FILENO, COMPOSE_MAX_BYTES, &bytes, &len);
	if (r < 0)
		return err_sys(e, -r, "read the description of the image");
	if (open_store(q, STORE_SHARED, &s, e) < 0 ||
	    compose_image(&s, bytes, len, q->reference_count ? &q->references[0] : NULL, digest, id,
			  e) < 0)
		return -1;
	store_sync_later(&s);
	buf_addf(&out, "%s %s\n", digest, id);
	return print(&out, e);
}

/* After a build has forgotten steps: removes what they needed, unless others use the store. */
static int do_tidy(const struct request *q, struct err *e)
{
	CLEANUP(store_close) struct store s;
	struct storegc_result ignored;

	store_init(&s);
	if (store_open(q->store, q->owners, userns(), STORE_TIDYING, STORE_NO_WAIT, &s, e) < 0)
		return e->code == ERR_BUSY ? 0 : -1;
	return storegc_run(&s, STOREGC_RESUMABLE, &ignored, e);
}

/* ---- main ---- */

typedef int operation_fn(const struct request *q, struct err *e);

static operation_fn *find_operation(const char *name)
{
	static const struct {
		const char *name;
		operation_fn *run;
	} operations[] = {
		{ "pull", do_pull },       { "prune", do_prune }, { "remove", do_remove },
		{ "inspect", do_inspect }, { "load", do_load },   { "import", do_import },
		{ "save", do_save },       { "push", do_push },   { "compose", do_compose },
		{ "tidy", do_tidy },
	};

	for (size_t i = 0; i < COUNT_OF(operations); i++)
		if (strcmp(operations[i].name, name) == 0)
			return operations[i].run;
	return NULL;
}

static int run(char **argv, struct err *e)
{
	operation_fn *operation = argv[1] ? find_operation(argv[1]) : NULL;
	CLEANUP(cleanup_freep) struct request *q = mem_alloc(sizeof(*q));

	if (!operation)
		return err_set(e, ERR_INVALID, "this program is started by agentkernel");
	if (read_words(argv + 2, q, e) < 0)
		return -1;
	/* if the caller is gone, nobody waits for the answer */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	return operation(q, e);
}

static int report(const struct err *e)
{
	if (fcntl(TOOL_REPORT_FD, F_GETFD) < 0 ||
	    write(TOOL_REPORT_FD, e, sizeof(*e)) != (ssize_t)sizeof(*e))
		(void)fprintf(stderr, "%s: %s\n", TOOL_PROGRAM, e->msg);
	return TOOL_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	layerworkerops_fn *work = argc > 1 ? layerworkerops_find(argv[1]) : NULL;
	const struct transfer *transfer = argc > 1 ? transfer_find(argv[1]) : NULL;
	struct err e = { 0 };

	/* the kernel would use the name of a descriptor or a link */
	title_set_name(TOOL_PROGRAM);
	(void)umask(022);
	if (!work && !transfer)
		return run(argv, &e) < 0 ? report(&e) : 0;
	/* _exit(): a confined process cannot run the exit handlers of a C library or sanitizer */
	if (transfer)
		_exit(transfer_run(transfer, argv + 2, &e) < 0 ? report(&e) : 0);
	_exit(layerworker_enter(&e) < 0 || work(argv + 2, &e) < 0 ? report(&e) : 0);
}
