/*
 * workeraudit - what programs are told of the audit log.
 *
 * Theory of operation. Two shapes, one rule. The logs of a sandbox are the lines about it; events
 * are all lines from an offset on. A line is told to whoever may use the sandbox that it is about:
 * of the caller's owner (named/named), within the ceiling, and the very one, by its id, not
 * another of the same name. Of one that is gone nobody can tell what it was allowed to do: an owner
 * is told of what it did itself, anyone else only that it was removed.
 */
#include "cli/worker.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/timestamp.h"
#include "state/audit.h"
#include "named/named.h"
#include "state/statedir.h"
#include "policy/ceiling.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS_READ_BYTES 65536u /* of the log, in one call */

/* What was found out about the last sandbox: lines come in runs. */
struct verdict {
	char id[NAMED_ID_BYTES + 1];
	bool is_gone, is_usable;
};

static void judge(const struct worker *w, const char *name, const char *id, struct verdict *v)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };
	struct err e = { 0 };

	named_init(&n); /* released at every return */
	if (strcmp(v->id, id) == 0)
		return;
	*v = (struct verdict){ 0 };
	(void)snprintf(v->id, sizeof(v->id), "%s", id);
	if (named_open(w->ak, name, &n, &e) < 0)
		v->is_gone = e.code == ERR_NOT_FOUND || e.code == ERR_INVALID;
	else if (strcmp(n.id, id) != 0)
		v->is_gone = true;
	else
		v->is_usable = worker_is_creators(w, n.creator, WORKER_USES_IT) ||
			       (named_load_policy(&n, &policy, &e) == 0 &&
				ceiling_check(&policy, &w->ceiling.policy, "", NULL, &e) == 0);
}

static bool is_for_caller(const struct worker *w, const struct auditline *a, struct verdict *v)
{
	if (!named_is_visible(w->ak, a->owner))
		return false;
	if (!a->sandbox)
		return true;
	if (!a->id) /* there was none: a failure of the caller's own */
		return named_owner(w->ak) != NULL;
	judge(w, a->sandbox, a->id, v);
	if (v->is_gone)
		return named_owner(w->ak) || a->type == AUDITLINE_REMOVE;
	return v->is_usable;
}

/* ---- of one sandbox ---- */

static void add_entry(struct json *j, const struct auditline *a)
{
	char time[TIMESTAMP_TEXT_MAX_BYTES];

	json_open_object(j, NULL);
	json_add_text(j, "time", timestamp_format(a->time_ms, time));
	json_add_text(j, "type", auditline_type_word(a->type));
	json_add_text(j, "sandbox", a->sandbox);
	if (a->what)
		json_add_text(j, "what", a->what);
	if (a->argv) {
		json_open_array(j, "command");
		for (char *const *word = a->argv; *word; word++)
			json_add_text(j, NULL, *word);
		json_close_array(j);
	}
	json_add_text(j, "result", a->result);
	json_close_object(j);
}

/* The file that is written now: what happened lately. */
int workeraudit_logs(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");
	cleanup_free char *path = NULL;
	cleanup_free char *text = NULL;
	cleanup_free char **words = mem_alloc(AUDITLINE_WORDS_MAX * sizeof(*words));
	struct verdict verdict = { 0 };
	char *rest, *line;
	size_t len = 0;
	int r;

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    statedir_path(w->ak, AUDIT_FILE, &path, e) < 0)
		return -1;
	r = file_read_at(AT_FDCWD, path, 2 * AUDIT_MAX_BYTES, &text, &len);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "read '%s'", path);
	json_open_array(j, "entries");
	rest = text;
	while (rest && (line = strsep(&rest, "\n"))) {
		struct auditline a;

		if (auditline_parse(line, strlen(line), words, &a) && a.sandbox && a.id &&
		    strcmp(a.sandbox, name) == 0 && is_for_caller(w, &a, &verdict))
			add_entry(j, &a);
	}
	json_close_array(j);
	return 0;
}

/* ---- of all ---- */

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

int workeraudit_events(struct worker *w, struct json *j, struct err *e)
{
	cleanup_free char *path = NULL;
	cleanup_free char *bytes = NULL;
	cleanup_free char **words = mem_alloc(AUDITLINE_WORDS_MAX * sizeof(*words));
	uint64_t offset = worker_number(w, "offset", 0);
	struct verdict verdict = { 0 };
	char *line, *end;
	size_t len = 0;

	if (statedir_path(w->ak, AUDIT_FILE, &path, e) < 0 ||
	    read_part(path, offset, &bytes, &len, e) < 0)
		return -1;
	json_open_array(j, "entries");
	for (line = bytes; (end = memchr(line, '\n', len - (size_t)(line - bytes)));
	     line = end + 1) {
		cleanup_free char *whole = mem_dup_bytes(line, (size_t)(end - line));
		struct auditline a;

		if (!auditline_parse(line, (size_t)(end - line), words, &a) ||
		    !is_for_caller(w, &a, &verdict))
			continue;
		json_open_object(j, NULL);
		json_add_number(j, "offset", (int64_t)(offset + (uint64_t)(end + 1 - bytes)));
		json_add_text(j, "line", whole);
		json_close_object(j);
	}
	if (line == bytes)
		line += len == EVENTS_READ_BYTES ? len : 0; /* no line is that long: damaged */
	json_close_array(j);
	json_add_number(j, "next_offset", (int64_t)(offset + (uint64_t)(line - bytes)));
	return 0;
}
