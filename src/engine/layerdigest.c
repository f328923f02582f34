/*
 * layerdigest - is a layer of the store still what it was? See layerdigest.h.
 *
 * The image helper reads the layer, as the owner of its files, and gives the digest.
 */
#include "engine/layerdigest.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "engine/helper.h"
#include "engine/imagehelper.h"
#include "engine/layerstore.h"
#include "engine/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX_BYTES 4096u
#define ANSWER_KEY "diff-id="

struct digest {
	char text[LAYERDIGEST_MAX_BYTES];
};

struct computing {
	const char *program;
	int layer_fd;
	struct digest digest;
};

static int take_answer(int fd, struct digest *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	const char *value;
	size_t len = 0;
	int r = file_read_fd(fd, ANSWER_MAX_BYTES, &text, &len);

	if (r < 0)
		return err_sys(e, -r, "read a digest");
	value = strstr(text, ANSWER_KEY);
	if (!value)
		return err_set(e, ERR_REMOTE, "the image helper gave no digest");
	value += sizeof(ANSWER_KEY) - 1;
	if ((size_t)snprintf(ret->text, sizeof(ret->text), "%.*s", (int)strcspn(value, "\n"),
			     value) >= sizeof(ret->text))
		return err_set(e, ERR_REMOTE, "the image helper gave a long digest");
	return 0;
}

static int compute(void *context, struct err *e)
{
	struct computing *c = context;
	static const char *const words[] = { "raw=yes", NULL };
	struct imagehelper_transfer t = {
		.operation = "layer-digest",
		.words = words,
		.dir_fd = c->layer_fd,
		.stdin_fd = -1,
		.stdout_fd = -1,
		.program = c->program,
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
	if (r == 0)
		r = take_answer(read_fd, &c->digest, e);
	if (r == 0)
		r = imagehelper_wait(&job, e);
	imagehelper_job_done(&job);
	return r;
}

static int find_digest(int store_fd, const char *id, struct digest *ret, struct err *e)
{
	cleanup_free char *program = NULL;
	struct computing c = { .layer_fd = -1 };
	cleanup_fd int layer_fd = -1;

	if (helper_find(TOOL_PROGRAM, &program, e) < 0 ||
	    layerstore_open_layer(store_fd, id, &layer_fd, e) < 0)
		return -1;
	c.program = program;
	c.layer_fd = layer_fd;
	if (owner_run(compute, &c, &c.digest, sizeof(c.digest), e) < 0)
		return -1;
	*ret = c.digest;
	return 0;
}

int layerdigest_write(int store_fd, const char *id, struct err *e)
{
	cleanup_free char *name = mem_format("%s" LAYERDIGEST_SUFFIX, id);
	struct digest d;
	int r;

	if (find_digest(store_fd, id, &d, e) < 0)
		return err_wrap(e, "layer %s", id);
	r = file_create_at(store_fd, name, 0600, d.text);
	if (r < 0)
		return err_sys(e, -r, "write the digest of layer %s", id);
	return 0;
}

int layerdigest_check(int store_fd, const char *id, struct err *e)
{
	cleanup_free char *name = mem_format("%s" LAYERDIGEST_SUFFIX, id);
	char expected[LAYERDIGEST_MAX_BYTES];
	struct digest d;
	int r = file_read_line(store_fd, name, expected, sizeof(expected));

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "read the digest of layer %s", id);
	if (find_digest(store_fd, id, &d, e) < 0)
		return err_wrap(e, "layer %s", id);
	if (strcmp(expected, d.text) != 0)
		return err_set(e, ERR_CORRUPT,
			       "the files of layer %s are not what they were: its digest is %s, it "
			       "was %s (import the checkpoint again if you have exported it)",
			       id, d.text, expected);
	return 0;
}
