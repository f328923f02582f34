/* record - what starting a command from an image takes; see record.h. */
#include "image/record.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "image/reference.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define OPEN_ATTEMPTS_MAX 8

enum kind { KIND_TEXT, KIND_ARRAY, KIND_NUMBER, KIND_LIST, KIND_LAYER };

static const struct row {
	const char *key;
	enum kind kind;
	size_t offset;
	size_t size; /* KIND_ARRAY */
} rows[] = {
#define TEXT(key_, member)                                                                         \
	{                                                                                          \
		key_, KIND_TEXT, offsetof(struct record, member), 0                                \
	}
#define ARRAY(key_, member)                                                                        \
	{                                                                                          \
		key_, KIND_ARRAY, offsetof(struct record, member),                                 \
			sizeof(((struct record *)0)->member)                                       \
	}
#define NUMBER(key_, member)                                                                       \
	{                                                                                          \
		key_, KIND_NUMBER, offsetof(struct record, member), 0                              \
	}
#define LIST(key_, member)                                                                         \
	{                                                                                          \
		key_, KIND_LIST, offsetof(struct record, member), 0                                \
	}
	ARRAY("id", id),
	TEXT("digest", digest),
	TEXT("config", config),
	TEXT("created", created),
	NUMBER("size", size_bytes),
	NUMBER("added", added_s),
	ARRAY("owners", owners),
	{ "layer", KIND_LAYER, 0, 0 },
	LIST("env", env),
	LIST("entrypoint", entrypoint),
	LIST("cmd", cmd),
	TEXT("user", user),
	TEXT("workdir", workdir),
	TEXT("passwd", passwd),
	TEXT("group", group),
};

static void list_add(char ***list, const char *text)
{
	size_t count = 0;

	while (*list && (*list)[count])
		count++;
	*list = mem_grow(*list, count + 2, sizeof(**list));
	(*list)[count] = mem_dup(text);
	(*list)[count + 1] = NULL;
}

static void list_free(char ***list)
{
	for (char **entry = *list; entry && *entry; entry++)
		free(*entry);
	free(*list);
	*list = NULL;
}

static int add_layer(struct record *r, const char *id, struct err *e)
{
	if (r->layer_count == RECORD_LAYERS_MAX || strlen(id) != RECORD_ID_BYTES ||
	    strspn(id, "abcdefghijklmnopqrstuvwxyz234567") != RECORD_ID_BYTES)
		return err_set(e, ERR_CORRUPT, "an image's record names a layer '%s'", id);
	memcpy(r->layers[r->layer_count++], id, RECORD_ID_BYTES + 1);
	return 0;
}

static int set(struct record *r, const struct row *row, const char *value, struct err *e)
{
	void *member = (char *)r + row->offset;

	switch (row->kind) {
	case KIND_TEXT:
		free(*(char **)member);
		*(char **)member = mem_dup(value);
		return 0;
	case KIND_ARRAY:
		if ((size_t)snprintf(member, row->size, "%s", value) >= row->size)
			return err_set(e, ERR_CORRUPT, "an image's record has a long '%s'",
				       row->key);
		return 0;
	case KIND_NUMBER:
		if (sscanf(value, "%" SCNu64, (uint64_t *)member) != 1)
			return err_set(e, ERR_CORRUPT, "an image's record has no number as '%s'",
				       row->key);
		return 0;
	case KIND_LIST:
		list_add(member, value);
		return 0;
	case KIND_LAYER:
		return add_layer(r, value, e);
	}
	return -1;
}

static int read_entry(struct record *r, const char *entry, struct err *e)
{
	size_t key_len = strcspn(entry, "=");

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (strlen(rows[i].key) == key_len && entry[key_len] == '=' &&
		    memcmp(rows[i].key, entry, key_len) == 0)
			return set(r, &rows[i], entry + key_len + 1, e);
	return err_set(e, ERR_CORRUPT, "an image's record holds an unknown entry");
}

/* What a reader may rely on: no text is NULL. */
static void fill_gaps(struct record *r)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char **member = (char **)((char *)r + rows[i].offset);

		if (rows[i].kind == KIND_TEXT && !*member)
			*member = mem_dup("");
	}
}

int record_parse(const char *bytes, size_t len, struct record *ret, struct err *e)
{
	CLEANUP(record_done) struct record r = { 0 };
	size_t at = sizeof(RECORD_MAGIC);

	if (len < at || bytes[len - 1] != '\0' || memcmp(bytes, RECORD_MAGIC, at) != 0)
		return err_set(e, ERR_CORRUPT, "this is no record of an image");
	while (at < len) {
		if (read_entry(&r, bytes + at, e) < 0)
			return -1;
		at += strlen(bytes + at) + 1;
	}
	fill_gaps(&r);
	/* the digests become names of files */
	if (r.layer_count == 0 || !r.owners[0] || !r.id[0] || !reference_is_digest(r.digest) ||
	    !reference_is_digest(r.config))
		return err_set(e, ERR_CORRUPT, "an image's record is incomplete");
	*ret = r;
	r = (struct record){ 0 };
	return 0;
}

static void put(struct buf *out, const char *key, const char *value)
{
	buf_addf(out, "%s=%s", key, value);
	buf_add(out, "", 1);
}

static void put_row(const struct record *r, const struct row *row, struct buf *out)
{
	const void *member = (const char *)r + row->offset;
	char number[24];

	switch (row->kind) {
	case KIND_TEXT:
		if (*(char *const *)member)
			put(out, row->key, *(char *const *)member);
		break;
	case KIND_ARRAY:
		if (*(const char *)member)
			put(out, row->key, member);
		break;
	case KIND_NUMBER:
		(void)snprintf(number, sizeof(number), "%" PRIu64, *(const uint64_t *)member);
		put(out, row->key, number);
		break;
	case KIND_LIST:
		for (char *const *entry = *(char **const *)member; entry && *entry; entry++)
			put(out, row->key, *entry);
		break;
	case KIND_LAYER:
		for (unsigned i = 0; i < r->layer_count; i++)
			put(out, row->key, r->layers[i]);
		break;
	}
}

void record_format(const struct record *r, struct buf *out)
{
	buf_add(out, RECORD_MAGIC, sizeof(RECORD_MAGIC));
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		put_row(r, &rows[i], out);
}

void record_done(struct record *r)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		void *member = (char *)r + rows[i].offset;

		if (rows[i].kind == KIND_LIST) {
			list_free(member);
		} else if (rows[i].kind == KIND_TEXT) {
			free(*(char **)member);
			*(char **)member = NULL;
		}
	}
}

/* Locks what the name leads to; what was removed meanwhile is not used. */
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
