/* op_audit - reads the audit log for a caller; see op_audit.h. */
#include "ops/op_audit.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "named/named.h"
#include "ops/access.h"
#include "policy/ceiling.h"
#include "state/ak.h"
#include "state/audit.h"
#include "state/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EVENTS_READ_BYTES 65536u /* of the log in one call */

/* Result for the last sandbox, cached because consecutive lines are often about the same one. */
struct verdict {
	char id[NAMED_ID_BYTES + 1];
	bool is_gone, is_usable;
};

static void judge(const struct ak *ak, const char *name, const char *id, struct verdict *v)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };
	struct err e = { 0 };

	named_init(&n); /* released at every return */
	if (strcmp(v->id, id) == 0)
		return;
	*v = (struct verdict){ 0 };
	(void)snprintf(v->id, sizeof(v->id), "%s", id);
	if (named_open(ak, name, &n, &e) < 0)
		v->is_gone = e.code == ERR_NOT_FOUND || e.code == ERR_INVALID;
	else if (strcmp(n.id, id) != 0)
		v->is_gone = true;
	else
		v->is_usable = access_is_creators(ak, n.creator, ACCESS_USES_IT) ||
			       (named_load_policy(&n, &policy, &e) == 0 &&
				ceiling_check(&policy, ak->ceiling, "", NULL, &e) == 0);
}

static bool is_for_caller(const struct ak *ak, const struct auditline *a, struct verdict *v)
{
	if (!ak->ceiling)
		return true;
	if (!named_is_visible(ak, a->owner))
		return false;
	if (!a->sandbox)
		return true;
	if (!a->id) /* no such sandbox: a failed call of this owner */
		return named_owner(ak) != NULL;
	judge(ak, a->sandbox, a->id, v);
	if (v->is_gone)
		return named_owner(ak) || a->type == AUDITLINE_REMOVE;
	return v->is_usable;
}

static int read_part(const char *path, uint64_t offset, char **ret, size_t *ret_len, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	cleanup_free char *bytes = mem_alloc(EVENTS_READ_BYTES + 1);
	ssize_t n;

	if (fd < 0 && errno != ENOENT)
		return err_sys(e, errno, "open '%s'", path);
	n = fd < 0 ? 0 : pread(fd, bytes, EVENTS_READ_BYTES, (off_t)offset);
	if (n < 0)
		return err_sys(e, errno, "read '%s'", path);
	bytes[n] = '\0';
	*ret_len = (size_t)n;
	*ret = take_ptr(bytes);
	return 0;
}

/* Reports the complete lines in `bytes`, which begins at `offset`; returns their total length. */
static size_t tell_lines(const struct ak *ak, const struct op_audit_args *args, char *bytes,
			 size_t len, uint64_t offset)
{
	cleanup_free char **words = mem_alloc(AUDITLINE_WORDS_MAX * sizeof(*words));
	struct verdict verdict = { 0 };
	char *line = bytes, *end;

	for (; (end = memchr(line, '\n', len - (size_t)(line - bytes))); line = end + 1) {
		cleanup_free char *whole = mem_dup_bytes(line, (size_t)(end - line));
		struct auditline a;

		if (!auditline_parse(line, (size_t)(end - line), words, &a))
			continue;
		if (args->name && (!a.sandbox || !a.id || strcmp(a.sandbox, args->name) != 0))
			continue;
		if (is_for_caller(ak, &a, &verdict))
			args->on_line(args->context, &a, whole,
				      offset + (uint64_t)(end + 1 - bytes));
	}
	return (size_t)(line - bytes);
}

/* Reads only the current file. */
static int tell_of_sandbox(struct ak *ak, const struct op_audit_args *args, const char *path,
			   struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r;

	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	r = file_read_at(AT_FDCWD, path, 2 * AUDIT_MAX_BYTES, &text, &len);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "read '%s'", path);
	if (r == 0)
		(void)tell_lines(ak, args, text, len, 0);
	return 0;
}

int op_audit(struct ak *ak, const struct op_audit_args *args, const struct op_events *ev,
	     struct op_audit_result *ret, struct err *e)
{
	cleanup_free char *path = NULL, *bytes = NULL;
	size_t len = 0, told;

	(void)ev;
	if (statedir_path(ak, AUDIT_FILE, &path, e) < 0)
		return -1;
	if (args->name)
		return tell_of_sandbox(ak, args, path, e);
	if (read_part(path, args->offset, &bytes, &len, e) < 0)
		return -1;
	told = tell_lines(ak, args, bytes, len, args->offset);
	if (told == 0 && len == EVENTS_READ_BYTES)
		told = len; /* no line is that long: damaged */
	ret->next_offset = args->offset + told;
	return 0;
}
