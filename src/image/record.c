/* record - the data to start a command from an image; see record.h. */
#include "image/record.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "image/reference.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define OPEN_ATTEMPTS_MAX 8

#define ROW(key, kind, member) KEYROWS_ROW(struct record, key, kind, member)
static const struct keyrows_row rows[] = {
	ROW("id", KEYROWS_ARRAY, id),
	ROW("digest", KEYROWS_TEXT, digest),
	ROW("config", KEYROWS_TEXT, config),
	ROW("created", KEYROWS_TEXT, created),
	ROW("size", KEYROWS_NUMBER, size_bytes),
	ROW("added", KEYROWS_NUMBER, added_s),
	ROW("owners", KEYROWS_ARRAY, owners),
	ROW("env", KEYROWS_LIST, env),
	ROW("entrypoint", KEYROWS_LIST, entrypoint),
	ROW("cmd", KEYROWS_LIST, cmd),
	ROW("onbuild", KEYROWS_LIST, onbuild),
	ROW("shell", KEYROWS_LIST, shell),
	ROW("user", KEYROWS_TEXT, user),
	ROW("workdir", KEYROWS_TEXT, workdir),
	ROW("passwd", KEYROWS_TEXT, passwd),
	ROW("group", KEYROWS_TEXT, group),
};

static keyrows_read_fn read_layer;
static keyrows_write_fn write_layers;

static const struct keyrows format = {
	.what = RECORD_WHAT,
	.version = RECORD_VERSION,
	.rows = rows,
	.count = COUNT_OF(rows),
	.read_other = read_layer,
	.write_other = write_layers,
};

static int read_layer(void *object, const char *key, const char *id, struct err *e)
{
	struct record *r = object;

	if (strcmp(key, "layer") != 0)
		return 1;
	if (r->layer_count == RECORD_LAYERS_MAX || strlen(id) != RECORD_ID_BYTES ||
	    strspn(id, "abcdefghijklmnopqrstuvwxyz234567") != RECORD_ID_BYTES)
		return err_set(e, ERR_CORRUPT, "an image's record names a layer '%s'", id);
	memcpy(r->layers[r->layer_count++], id, RECORD_ID_BYTES + 1);
	return 0;
}

static void write_layers(const void *object, struct buf *out)
{
	const struct record *r = object;

	for (unsigned i = 0; i < r->layer_count; i++)
		keyrows_put(out, "layer", r->layers[i]);
}

/* Guarantees that no text is NULL. */
static void fill_gaps(struct record *r)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char **member = (char **)((char *)r + rows[i].offset);

		if (rows[i].kind == KEYROWS_TEXT && !*member)
			*member = mem_dup("");
	}
}

int record_parse(const char *bytes, size_t len, struct record *ret, struct err *e)
{
	CLEANUP(record_done) struct record r = { 0 };

	if (keyrows_parse(&format, bytes, len, &r, e) < 0) {
		e->code = ERR_CORRUPT; /* also for another version: it is written again */
		return -1;
	}
	fill_gaps(&r);
	/* the digests are used as file names */
	if (r.layer_count == 0 || !r.owners[0] || !r.id[0] || !reference_is_digest(r.digest) ||
	    !reference_is_digest(r.config))
		return err_set(e, ERR_CORRUPT, "an image's record is incomplete");
	*ret = r;
	r = (struct record){ 0 };
	return 0;
}

void record_format(const struct record *r, struct buf *out)
{
	keyrows_format(&format, r, out);
}

void record_done(struct record *r)
{
	keyrows_done(&format, r);
}

/* Locks the file that the name leads to; retries if it was removed meanwhile. */
static int open_locked(int dir_fd, const char *path, int *ret_fd, struct err *e)
{
	for (int attempt = 0; attempt < OPEN_ATTEMPTS_MAX; attempt++) {
		cleanup_fd int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
		struct stat st;

		if (fd < 0 && errno == ENOENT)
			return err_set(e, ERR_NOT_FOUND, "no such image");
		if (fd < 0 || flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0)
			return err_sys(e, errno, "open an image's record");
		if (st.st_nlink > 0) {
			*ret_fd = take_fd(&fd);
			return 0;
		}
	}
	return err_set(e, ERR_BUSY, "the image is being removed");
}

int record_open(int dir_fd, const char *path, struct record *ret, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = -1;
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int r;

	if (open_locked(dir_fd, path, &fd, e) < 0)
		return -1;
	r = file_read_fd(fd, RECORD_MAX_BYTES, &bytes, &len);
	if (r < 0)
		return err_sys(e, -r, "read an image's record");
	if (record_parse(bytes, len, ret, e) < 0)
		return -1;
	*ret_fd = take_fd(&fd);
	return 0;
}

bool record_is_settled(int records_fd, const char *id)
{
	char name[RECORD_ID_BYTES + sizeof(RECORD_UNSYNCED)];
	char written[RECORD_BOOT_MAX_BYTES], now[RECORD_BOOT_MAX_BYTES];

	int r;

	(void)snprintf(name, sizeof(name), "%s" RECORD_UNSYNCED, id);
	r = file_read_line(records_fd, name, written, sizeof(written));
	if (r < 0)
		return r == -ENOENT;
	return record_current_boot(now) == 0 && strcmp(now, written) == 0;
}

int record_current_boot(char out[RECORD_BOOT_MAX_BYTES])
{
	return file_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", out,
			      RECORD_BOOT_MAX_BYTES);
}
