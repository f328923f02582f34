/* keyrows - converts a struct to "key=value" texts and back; see keyrows.h. */
#include "base/keyrows.h"

#include "base/buildid.h"
#include "base/cleanup.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC_PREFIX "agentkernel "
#define MAGIC_MAX_BYTES 64

size_t keyrows_list_count(char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

bool keyrows_list_add(char ***list, const char *text)
{
	size_t count = keyrows_list_count(*list);

	if (count == KEYROWS_LIST_MAX)
		return false;
	*list = mem_grow(*list, count + 2, sizeof(**list));
	(*list)[count] = mem_dup(text);
	(*list)[count + 1] = NULL;
	return true;
}

void keyrows_list_free(char ***list)
{
	for (char **entry = *list; entry && *entry; entry++)
		free(*entry);
	free(*list);
	*list = NULL;
}

bool keyrows_read_number(const char *text, uint64_t max, uint64_t *ret)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long long value;

	if (digits == 0 || text[digits] != '\0')
		return false;
	errno = 0;
	value = strtoull(text, NULL, 10);
	if (errno != 0 || value > max)
		return false;
	*ret = value;
	return true;
}

static bool set(const struct keyrows_row *row, void *member, const char *value)
{
	uint64_t number = 0;

	switch (row->kind) {
	case KEYROWS_TEXT:
		free(*(char **)member);
		*(char **)member = mem_dup(value);
		return true;
	case KEYROWS_ARRAY:
		return (size_t)snprintf(member, row->size, "%s", value) < row->size;
	case KEYROWS_NUMBER:
		return keyrows_read_number(value, UINT64_MAX, member);
	case KEYROWS_ID:
		if (!keyrows_read_number(value, UINT32_MAX, &number))
			return false;
		*(uint32_t *)member = (uint32_t)number;
		return true;
	case KEYROWS_FLAG:
		*(bool *)member = strcmp(value, "yes") == 0;
		return *(bool *)member;
	case KEYROWS_LIST:
		return keyrows_list_add(member, value);
	}
	return false;
}

static int read_entry(const struct keyrows *k, const char *entry, void *object, struct err *e)
{
	size_t key_len = strcspn(entry, "=");
	cleanup_free char *key = NULL;
	int r = 1;

	if (entry[key_len] != '=')
		return err_set(e, ERR_CORRUPT, "a record of a %s has an invalid entry",
			       k->what);
	for (size_t i = 0; i < k->count; i++) {
		const struct keyrows_row *row = &k->rows[i];

		if (strlen(row->key) != key_len || memcmp(row->key, entry, key_len) != 0)
			continue;
		if (set(row, (char *)object + row->offset, entry + key_len + 1))
			return 0;
		return err_set(e, ERR_CORRUPT, "a %s's record has a wrong '%s'", k->what, row->key);
	}
	if (k->read_other) {
		key = mem_dup_bytes(entry, key_len);
		r = k->read_other(object, key, entry + key_len + 1, e);
	}
	if (r <= 0)
		return r;
	return err_set(e, ERR_CORRUPT, "a %s's record holds an unknown entry '%.*s'", k->what,
		       (int)(key_len < 32 ? key_len : 32), entry);
}

static void format_magic(const struct keyrows *k, char out[MAGIC_MAX_BYTES])
{
	(void)snprintf(out, MAGIC_MAX_BYTES, MAGIC_PREFIX "%s %u", k->what,
		       buildid_version(k->version));
}

/* An earlier version only has fewer keys; the meaning of a later one is unknown. */
static int check_magic(const struct keyrows *k, const char *bytes, size_t len, size_t *ret_at,
		       struct err *e)
{
	char magic[MAGIC_MAX_BYTES];
	uint64_t version = 0;
	size_t base_len;

	format_magic(k, magic);
	if (len == 0 || bytes[len - 1] != '\0')
		return err_set(e, ERR_CORRUPT, "not a record of a %s, or a truncated one",
			       k->what);
	*ret_at = strlen(bytes) + 1;
	base_len = (size_t)(strrchr(magic, ' ') - magic) + 1;
	if (strncmp(bytes, magic, base_len) != 0 ||
	    !keyrows_read_number(bytes + base_len, UINT32_MAX, &version) || version == 0)
		return err_set(e, ERR_CORRUPT, "not a record of a %s", k->what);
	if (version <= buildid_version(k->version))
		return 0;
	return err_set(e, ERR_UNSUPPORTED,
		       "it was written by a later version of agentkernel (%.16s, this one knows %u)",
		       bytes + base_len, k->version);
}

int keyrows_parse(const struct keyrows *k, const char *bytes, size_t len, void *object,
		  struct err *e)
{
	size_t at = 0;

	if (check_magic(k, bytes, len, &at, e) < 0)
		return -1;
	while (at < len) {
		if (read_entry(k, bytes + at, object, e) < 0)
			return -1;
		at += strlen(bytes + at) + 1;
	}
	return 0;
}

void keyrows_put(struct buf *out, const char *key, const char *value)
{
	buf_add_text(out, key);
	buf_add(out, "=", 1);
	buf_add(out, value, strlen(value) + 1);
}

void keyrows_put_number(struct buf *out, const char *key, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	keyrows_put(out, key, text);
}

static void put_row(const struct keyrows_row *row, const void *member, struct buf *out)
{
	switch (row->kind) {
	case KEYROWS_TEXT:
		if (*(char *const *)member)
			keyrows_put(out, row->key, *(char *const *)member);
		break;
	case KEYROWS_ARRAY:
		if (*(const char *)member)
			keyrows_put(out, row->key, member);
		break;
	case KEYROWS_NUMBER:
		if (*(const uint64_t *)member)
			keyrows_put_number(out, row->key, *(const uint64_t *)member);
		break;
	case KEYROWS_ID:
		if (*(const uint32_t *)member)
			keyrows_put_number(out, row->key, *(const uint32_t *)member);
		break;
	case KEYROWS_FLAG:
		if (*(const bool *)member)
			keyrows_put(out, row->key, "yes");
		break;
	case KEYROWS_LIST:
		for (char *const *entry = *(char **const *)member; entry && *entry; entry++)
			keyrows_put(out, row->key, *entry);
		break;
	}
}

void keyrows_format(const struct keyrows *k, const void *object, struct buf *out)
{
	char magic[MAGIC_MAX_BYTES];

	format_magic(k, magic);
	buf_add(out, magic, strlen(magic) + 1);
	for (size_t i = 0; i < k->count; i++)
		put_row(&k->rows[i], (const char *)object + k->rows[i].offset, out);
	if (k->write_other)
		k->write_other(object, out);
}

void keyrows_done(const struct keyrows *k, void *object)
{
	for (size_t i = 0; i < k->count; i++) {
		void *member = (char *)object + k->rows[i].offset;

		if (k->rows[i].kind == KEYROWS_LIST) {
			keyrows_list_free(member);
		} else if (k->rows[i].kind == KEYROWS_TEXT) {
			free(*(char **)member);
			*(char **)member = NULL;
		}
	}
}

bool keyrows_list_has(char *const *list, const char *text)
{
	for (; list && *list; list++)
		if (strcmp(*list, text) == 0)
			return true;
	return false;
}
