/* layertransfer - packs and unpacks layers of checkpoints; see layertransfer.h. */
#include "named/layertransfer.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "engine/imagehelper.h"
#include "tree/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX_BYTES 4096u

struct work {
	const struct helper *program;
	const char *operation;
	const char *const *words;
	int dir_fd, in_fd, out_fd;
	struct layertransfer_result result;
};

static uint64_t find_number(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Copies the value of the line that starts with `key`; "" if there is none. */
static void find_text(const char *text, const char *key, char ret[LAYERTRANSFER_DIGEST_MAX_BYTES])
{
	size_t len = strlen(key);

	ret[0] = '\0';
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) != 0)
			continue;
		(void)snprintf(ret, LAYERTRANSFER_DIGEST_MAX_BYTES, "%.*s",
			       (int)strcspn(line + len, "\n"), line + len);
		return;
	}
}

static int take_answer(int fd, struct layertransfer_result *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = file_read_fd(fd, ANSWER_MAX_BYTES, &text, &len);

	if (r < 0)
		return err_sys(e, -r, "read the image helper's answer");
	find_text(text, "digest=", ret->digest);
	find_text(text, "diff-id=", ret->content);
	find_text(text, "content-id=", ret->same);
	ret->bytes = find_number(text, "\nbytes=");
	ret->entries = find_number(text, "entries=");
	ret->file_bytes = find_number(text, "file-bytes=");
	return 0;
}

/* Waits for the helper even without a digest, because its own error says more. */
static int do_work(void *context, struct err *e)
{
	struct work *w = context;
	struct imagehelper_transfer t = {
		.operation = w->operation,
		.words = w->words,
		.dir_fd = w->dir_fd,
		.stdin_fd = w->in_fd,
		.stdout_fd = w->out_fd,
		.program = w->program,
	};
	struct imagehelper_job job = { .report_fd = -1 };
	cleanup_fd int read_fd = -1;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	read_fd = ends[0];
	t.answer_fd = ends[1];
	r = imagehelper_start(&t, &job, e);
	(void)close(ends[1]);
	if (r == 0 && take_answer(read_fd, &w->result, e) == 0)
		r = imagehelper_wait(&job, e);
	imagehelper_job_done(&job);
	if (r == 0 && !w->result.content[0])
		return err_set(e, ERR_REMOTE, "the image helper gave no digest");
	return r;
}

typedef int run_fn(owner_fn *fn, void *context, void *shared, size_t size, struct err *e);

/* Runs as the owner of the files; unpacking, which parses hostile archives, in a new namespace. */
static int run_work(struct work *w, run_fn *run_as, struct layertransfer_result *ret, struct err *e)
{
	CLEANUP(helper_done) struct helper program = { .fd = -1 };
	int r;

	if (helper_open(TOOL_PROGRAM, &program, e) < 0)
		return -1;
	/* cppcheck-suppress autoVariables ; until run_as() returns */
	w->program = &program;
	r = run_as(do_work, w, &w->result, sizeof(w->result), e);
	w->program = NULL;
	if (r < 0)
		return -1;
	*ret = w->result;
	return 0;
}

int layertransfer_pack(int dir_fd, int out_fd, struct layertransfer_result *ret, struct err *e)
{
	static const char *const words[] = { "form=zstd", NULL };
	struct work w = { .operation = "layer-pack",
			  .words = words,
			  .dir_fd = dir_fd,
			  .in_fd = -1,
			  .out_fd = out_fd };

	return run_work(&w, owner_run, ret, e);
}

int layertransfer_pack_step(int dir_fd, int out_fd, int64_t latest_s,
			    struct layertransfer_result *ret, struct err *e)
{
	char latest[32];
	const char *const words[] = { "form=plain", "content=yes", latest, NULL };
	struct work w = { .operation = "layer-pack",
			  .words = words,
			  .dir_fd = dir_fd,
			  .in_fd = -1,
			  .out_fd = out_fd };

	(void)snprintf(latest, sizeof(latest), "latest=%lld", (long long)latest_s);
	return run_work(&w, owner_run, ret, e);
}

int layertransfer_unpack(int in_fd, int dir_fd, struct layertransfer_result *ret, struct err *e)
{
	static const char *const all[] = { NULL };
	static const char *const one[] = { "owners=one", NULL };
	struct work w = { .operation = "layer-unpack",
			  .words = owner_is_one() ? one : all,
			  .dir_fd = dir_fd,
			  .in_fd = in_fd,
			  .out_fd = -1 };

	return run_work(&w, owner_run_apart, ret, e);
}

int layertransfer_digest(int dir_fd, struct layertransfer_result *ret, struct err *e)
{
	static const char *const words[] = { "raw=yes", NULL };
	struct work w = { .operation = "layer-digest",
			  .words = words,
			  .dir_fd = dir_fd,
			  .in_fd = -1,
			  .out_fd = -1 };

	return run_work(&w, owner_run, ret, e);
}
