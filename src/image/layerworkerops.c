/* layerworkerops - the operations of a worker; see layerworkerops.h. */
#include "image/layerworkerops.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sweep.h"
#include "image/layer.h"
#include "image/layerconfine.h"
#include "image/layerpack.h"
#include "image/layerstream.h"
#include "image/manifest.h"
#include "image/archivesplit.h"
#include "image/layerworker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_MAX_BYTES LAYERWORKER_OUTPUT_MAX_BYTES
#define NAMES_MAX_BYTES (64u << 20)

static int answer(const struct buf *text, struct err *e)
{
	int r = file_write_all(STDOUT_FILENO, text->bytes, text->len);

	if (r < 0)
		return err_sys(e, -r, "give an answer");
	return 0;
}

/* unpack OWNERS: unpacks the archive. Prints "<diff id>\n", then the implied directories. */
static int unpack(char **words, struct err *e)
{
	CLEANUP(layer_result_done) struct layer_result result = { 0 };
	unsigned flags = words[0] && strcmp(words[0], "one") == 0 ? LAYER_ONE_OWNER : 0;
	cleanup_buf struct buf text;

	buf_init(&text, ANSWER_MAX_BYTES);
	if (layerconfine_self(LAYERWORKER_DIR_FD, e) < 0)
		return -1;
	if (layer_unpack(LAYERWORKER_ARCHIVE_FD, LAYERWORKER_DIR_FD, flags, &result, e) < 0)
		return -1;
	buf_addf(&text, "%s\n", result.diff_id);
	for (unsigned i = 0; i < result.implied_count; i++)
		buf_add(&text, result.implied[i], strlen(result.implied[i]) + 1);
	if (text.is_cut)
		return err_set(e, ERR_LIMIT, "the layer implies too many directories");
	return answer(&text, e);
}

struct lowers {
	int fds[MANIFEST_LAYERS_MAX];
	unsigned count;
};

static void lowers_done(struct lowers *l)
{
	for (unsigned i = 0; i < l->count; i++)
		cleanup_closep(&l->fds[i]);
}

static int open_lowers(char *names, struct lowers *l, struct err *e)
{
	char *name;

	while ((name = strsep(&names, ":"))) {
		if (l->count == MANIFEST_LAYERS_MAX)
			return err_set(e, ERR_LIMIT, "too many layers");
		l->fds[l->count] = openat(LAYERWORKER_DIR_FD, name,
					  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (l->fds[l->count] < 0)
			return err_sys(e, errno, "open layer %s", name);
		l->count++;
	}
	return 0;
}

static int list_names(char ***ret, unsigned *ret_count, char **ret_text, struct err *e)
{
	size_t len = 0;
	int r;

	if (lseek(LAYERWORKER_ARCHIVE_FD, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "read names");
	r = file_read_fd(LAYERWORKER_ARCHIVE_FD, NAMES_MAX_BYTES, ret_text, &len);
	if (r < 0)
		return err_sys(e, -r, "read names");
	for (size_t at = 0; at < len; at += strlen(*ret_text + at) + 1) {
		*ret = mem_grow(*ret, *ret_count + 1, sizeof(**ret));
		(*ret)[(*ret_count)++] = *ret_text + at;
	}
	return 0;
}

/* settle ID LOWER:LOWER...: the directories named in the archive get the lower layers' attributes.
 * */
static int settle(char **words, struct err *e)
{
	CLEANUP(lowers_done) struct lowers lowers = { .count = 0 };
	cleanup_free char *path = mem_format("making/%s", words[0] ? words[0] : "");
	cleanup_fd int dir_fd =
		openat(LAYERWORKER_DIR_FD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_free char **implied = NULL;
	cleanup_free char *text = NULL;
	unsigned count = 0;

	if (!words[0] || !words[1])
		return err_set(e, ERR_INVALID, "two words are needed");
	if (dir_fd < 0)
		return err_sys(e, errno, "open an unpacked layer");
	if (open_lowers(words[1], &lowers, e) < 0 || list_names(&implied, &count, &text, e) < 0)
		return -1;
	return layer_settle(dir_fd, lowers.fds, lowers.count, implied, count, e);
}

/* pack: writes the directory to the archive, without those that every sandbox mounts itself */
static int pack(char **words, struct err *e)
{
	static const char *const excluded[] = { "proc", "sys", "dev", "run", NULL };

	(void)words;
	return layerpack_write(LAYERWORKER_DIR_FD, LAYERWORKER_ARCHIVE_FD, excluded, e);
}

/* measure: prints "<diff id>\n" of the archive */
static int measure(char **words, struct err *e)
{
	const struct layer_limits limits = layer_default_limits();
	CLEANUP(layerstream_freep)
	struct layerstream *stream = layerstream_new(LAYERWORKER_ARCHIVE_FD, &limits);
	char diff_id[REFERENCE_DIGEST_MAX_BYTES];
	cleanup_buf struct buf text;
	const void *bytes;
	size_t len = 0;

	(void)words;
	buf_init(&text, BUF_TEXT_MAX_BYTES);
	if (layerconfine_self(LAYERWORKER_DIR_FD, e) < 0)
		return -1;
	do {
		if (layerstream_next(stream, &bytes, &len) < 0) {
			*e = *layerstream_get_error(stream);
			return -1;
		}
	} while (len > 0);
	layerstream_finish(stream, diff_id);
	buf_addf(&text, "%s\n", diff_id);
	return answer(&text, e);
}

/* split: extracts the archive's files into the directory; prints their list */
static int split(char **words, struct err *e)
{
	cleanup_buf struct buf list;

	(void)words;
	buf_init(&list, ARCHIVESPLIT_LIST_MAX_BYTES);
	if (layerconfine_self(LAYERWORKER_DIR_FD, e) < 0)
		return -1;
	if (archivesplit_archive(LAYERWORKER_ARCHIVE_FD, LAYERWORKER_DIR_FD, &list, e) < 0)
		return -1;
	return answer(&list, e);
}

/* sweep NAME: removes it from the directory */
static int sweep(char **words, struct err *e)
{
	return sweep_tree(LAYERWORKER_DIR_FD, words[0] ? words[0] : "", e);
}

/* move FROM TO: renames a layer within the directory */
static int move(char **words, struct err *e)
{
	if (!words[0] || !words[1])
		return err_set(e, ERR_INVALID, "two words are needed");
	if (renameat(LAYERWORKER_DIR_FD, words[0], LAYERWORKER_DIR_FD, words[1]) < 0)
		return err_sys(e, errno, "move a layer");
	return 0;
}

layerworkerops_fn *layerworkerops_find(const char *operation)
{
	static const struct {
		const char *name;
		layerworkerops_fn *run;
	} operations[] = {
		{ "unpack", unpack },   { "settle", settle }, { "pack", pack },
		{ "measure", measure }, { "split", split },   { "sweep", sweep },
		{ "move", move },
	};

	for (size_t i = 0; i < COUNT_OF(operations); i++)
		if (strcmp(operations[i].name, operation) == 0)
			return operations[i].run;
	return NULL;
}
