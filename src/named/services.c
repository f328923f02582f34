/* services - the services of a named sandbox; see services.h. */
#include "named/services.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "named/named.h"
#include "named/namedfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICES_FILE "services"

void services_done_one(struct service *s)
{
	keyrows_list_free(&s->needs);
	keyrows_list_free(&s->words);
	keyrows_list_free(&s->env);
	free(s->workdir);
	*s = (struct service){ .port = 0 };
}

void services_done(struct services *s)
{
	for (unsigned i = 0; i < s->count; i++)
		services_done_one(&s->list[i]);
	free(s->list);
	*s = (struct services){ 0 };
}

static void copy_list(char *const *from, char ***to)
{
	for (; from && *from; from++)
		(void)keyrows_list_add(to, *from);
}

void services_copy_one(const struct service *from, struct service *to)
{
	*to = (struct service){ .port = from->port,
				.is_once = from->is_once,
				.task_id = from->task_id };
	memcpy(to->name, from->name, sizeof(to->name));
	copy_list(from->needs, &to->needs);
	copy_list(from->words, &to->words);
	copy_list(from->env, &to->env);
	to->workdir = from->workdir ? mem_dup(from->workdir) : NULL;
}

static bool is_equal_list(char *const *a, char *const *b)
{
	size_t count = a ? keyrows_list_count(a) : 0;

	if (count != (b ? keyrows_list_count(b) : 0))
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(a[i], b[i]) != 0)
			return false;
	return true;
}

bool services_is_equal(const struct service *a, const struct service *b)
{
	return strcmp(a->name, b->name) == 0 && a->port == b->port && a->is_once == b->is_once &&
	       is_equal_list(a->needs, b->needs) && is_equal_list(a->words, b->words) &&
	       is_equal_list(a->env, b->env) &&
	       strcmp(a->workdir ? a->workdir : "", b->workdir ? b->workdir : "") == 0;
}

/* ---- changing ---- */

const struct service *services_find(const struct services *all, const char *name)
{
	for (unsigned i = 0; i < all->count; i++)
		if (strcmp(all->list[i].name, name) == 0)
			return &all->list[i];
	return NULL;
}

static bool is_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= SERVICE_NAME_MAX_BYTES && name[0] != '-' && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == len;
}

/* Needs name services that come before it, so there are no circles. */
static int check(const struct services *all, const struct service *s, struct err *e)
{
	if (!is_name(s->name))
		return err_set(e, ERR_INVALID,
			       "invalid service name '%s' (a-z, 0-9, '-', '_', '.', at most %u)",
			       s->name, SERVICE_NAME_MAX_BYTES);
	if (s->port > UINT16_MAX)
		return err_set(e, ERR_INVALID, "service '%s': no port %u", s->name, s->port);
	if (!s->words || !s->words[0] || !s->words[0][0])
		return err_set(e, ERR_INVALID, "service '%s' has no command", s->name);
	if (keyrows_list_count(s->words) > SERVICE_WORDS_MAX ||
	    (s->needs && keyrows_list_count(s->needs) > SERVICE_NEEDS_MAX))
		return err_set(e, ERR_LIMIT, "service '%s' has more than %u words or %u needs",
			       s->name, SERVICE_WORDS_MAX, SERVICE_NEEDS_MAX);
	for (char *const *need = s->needs; need && *need; need++) {
		const struct service *other = services_find(all, *need);
		const struct service *own = services_find(all, s->name);

		if (!other || strcmp(*need, s->name) == 0 || (own && other > own))
			return err_set(
				e, ERR_INVALID,
				"service '%s' needs '%s', which is not among those before it",
				s->name, *need);
	}
	return 0;
}

int services_put(struct services *all, struct service *s, struct err *e)
{
	struct service *own = (struct service *)(uintptr_t)services_find(all, s->name);

	if (check(all, s, e) < 0)
		return -1;
	if (!own && all->count == SERVICES_MAX)
		return err_set(e, ERR_LIMIT, "more than %u services", SERVICES_MAX);
	if (!own) {
		all->list = mem_grow(all->list, all->count + 1, sizeof(*all->list));
		own = &all->list[all->count++];
	} else {
		services_done_one(own);
	}
	*own = *s;
	*s = (struct service){ .port = 0 };
	return 0;
}

int services_remove(struct services *all, const char *name, struct err *e)
{
	const struct service *own = services_find(all, name);
	unsigned at;

	if (!own)
		return err_set(e, ERR_NOT_FOUND, "no service named '%s'", name);
	for (unsigned i = 0; i < all->count; i++)
		if (keyrows_list_has(all->list[i].needs, name))
			return err_set(e, ERR_BUSY, "service '%s' needs it", all->list[i].name);
	at = (unsigned)(own - all->list);
	services_done_one(&all->list[at]);
	memmove(&all->list[at], &all->list[at + 1], (all->count - at - 1) * sizeof(*all->list));
	all->count--;
	return 0;
}

/* ---- the file ---- */

static int read_row(void *object, const char *key, const char *value, struct err *e)
{
	struct services *all = object;
	struct service *s = all->count ? &all->list[all->count - 1] : NULL;
	uint64_t number = 0;

	if (strcmp(key, "service") == 0) {
		if (all->count == SERVICES_MAX || !is_name(value))
			return err_set(e, ERR_CORRUPT, "a service that cannot be");
		all->list = mem_grow(all->list, all->count + 1, sizeof(*all->list));
		s = &all->list[all->count++];
		*s = (struct service){ .port = 0 };
		(void)snprintf(s->name, sizeof(s->name), "%s", value);
		return 0;
	}
	if (!s)
		return 1;
	if (strcmp(key, "port") == 0) {
		if (!keyrows_read_number(value, UINT16_MAX, &number))
			return err_set(e, ERR_CORRUPT, "a port that is none");
		s->port = (uint32_t)number;
	} else if (strcmp(key, "once") == 0) {
		s->is_once = strcmp(value, "yes") == 0;
	} else if (strcmp(key, "task") == 0) {
		if (!keyrows_read_number(value, UINT32_MAX, &number))
			return err_set(e, ERR_CORRUPT, "a command that is none");
		s->task_id = (uint32_t)number;
	} else if (strcmp(key, "workdir") == 0) {
		free(s->workdir);
		s->workdir = mem_dup(value);
	} else if (strcmp(key, "needs") == 0) {
		(void)keyrows_list_add(&s->needs, value);
	} else if (strcmp(key, "word") == 0) {
		(void)keyrows_list_add(&s->words, value);
	} else if (strcmp(key, "env") == 0) {
		(void)keyrows_list_add(&s->env, value);
	} else {
		return 1;
	}
	return 0;
}

static void put_list(struct buf *out, const char *key, char *const *list)
{
	for (; list && *list; list++)
		keyrows_put(out, key, *list);
}

static void write_rows(const void *object, struct buf *out)
{
	const struct services *all = object;

	for (unsigned i = 0; i < all->count; i++) {
		const struct service *s = &all->list[i];

		keyrows_put(out, "service", s->name);
		if (s->port)
			keyrows_put_number(out, "port", s->port);
		if (s->is_once)
			keyrows_put(out, "once", "yes");
		if (s->task_id)
			keyrows_put_number(out, "task", s->task_id);
		if (s->workdir)
			keyrows_put(out, "workdir", s->workdir);
		put_list(out, "needs", s->needs);
		put_list(out, "word", s->words);
		put_list(out, "env", s->env);
	}
}

static const struct keyrows format = {
	.what = "services", .version = 1, .read_other = read_row, .write_other = write_rows
};

int services_load(const struct named *n, struct services *ret, struct err *e)
{
	CLEANUP(services_done) struct services found = { 0 };
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int r = file_read_at(n->dir_fd, SERVICES_FILE, SERVICES_FILE_MAX_BYTES, &bytes, &len);

	if (r == -ENOENT) {
		*ret = (struct services){ 0 };
		return 0;
	}
	if (r < 0)
		return err_sys(e, -r, "read the services of sandbox '%s'", n->name);
	if (keyrows_parse(&format, bytes, len, &found, e) < 0)
		return err_wrap(e, "services of sandbox '%s'", n->name);
	for (unsigned i = 0; i < found.count; i++)
		if (!found.list[i].words)
			return err_set(e, ERR_CORRUPT,
				       "service '%s' of sandbox '%s' has no command",
				       found.list[i].name, n->name);
	*ret = found;
	found = (struct services){ 0 };
	return 0;
}

int services_save(const struct named *n, const struct services *s, struct err *e)
{
	cleanup_buf struct buf bytes;

	buf_init(&bytes, SERVICES_FILE_MAX_BYTES);
	keyrows_format(&format, s, &bytes);
	if (bytes.is_cut)
		return err_set(e, ERR_LIMIT, "the services are longer than %u bytes",
			       SERVICES_FILE_MAX_BYTES);
	return namedfile_replace(n->dir_fd, SERVICES_FILE, &bytes, 0, e);
}
