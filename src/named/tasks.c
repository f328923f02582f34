/* tasks - the commands of a named sandbox; see tasks.h. */
#include "named/tasks.h"

#include "base/cleanup.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "named/lifecycle.h"
#include "named/named.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ask(const struct ak *ak, const char *sandbox, uint32_t kind, const void *body,
	       size_t len, struct frame *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;
	cleanup_fd int fd = -1;

	named_init(&n);
	if (named_open(ak, sandbox, &n, e) < 0 || control_connect(n.dir_fd, sandbox, &fd, e) < 0)
		return -1;
	return control_ask(fd, kind, body, len, ret, e);
}

void tasks_list_done(struct tasks_list *l)
{
	free(l->entries);
	*l = (struct tasks_list){ 0 };
}

int tasks_list(const struct ak *ak, const char *sandbox, struct tasks_list *ret, struct err *e)
{
	CLEANUP(frame_done) struct frame answer = { 0 };

	*ret = (struct tasks_list){ 0 };
	if (ask(ak, sandbox, CONTROL_PS, NULL, 0, &answer, e) < 0)
		return -1;
	ret->count = answer.len / sizeof(*ret->entries);
	ret->entries = mem_alloc((ret->count + 1) * sizeof(*ret->entries));
	memcpy(ret->entries, answer.bytes, ret->count * sizeof(*ret->entries));
	for (size_t i = 0; i < ret->count; i++)
		ret->entries[i].text[CONTROL_TEXT_MAX_BYTES - 1] = '\0';
	return 0;
}

void tasks_command_done(struct tasks_command *c)
{
	keyrows_list_free(&c->argv);
	*c = (struct tasks_command){ 0 };
}

int tasks_describe(const struct ak *ak, const char *sandbox, uint32_t id, struct tasks_command *ret,
		   struct err *e)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	struct control_command head;
	size_t count = 0;

	if (ask(ak, sandbox, CONTROL_COMMAND, &id, sizeof(id), &answer, e) < 0)
		return -1;
	if (answer.len < sizeof(head))
		return err_set(e, ERR_REMOTE, "the supervisor gave half an answer");
	memcpy(&head, answer.bytes, sizeof(head));
	*ret = (struct tasks_command){ .pid = head.pid, .is_cut = head.is_cut };
	ret->argv = mem_alloc(sizeof(*ret->argv));
	/* base/frame adds a NUL after the bytes, so strlen() stays inside */
	for (size_t at = sizeof(head); at < answer.len; at += strlen(answer.bytes + at) + 1) {
		ret->argv = mem_grow(ret->argv, count + 2, sizeof(*ret->argv));
		ret->argv[count++] = mem_dup(answer.bytes + at);
		ret->argv[count] = NULL;
	}
	return 0;
}

void tasks_format_id(uint32_t id, char out[TASKS_ID_MAX_BYTES])
{
	(void)snprintf(out, TASKS_ID_MAX_BYTES, "%08" PRIx32, id);
}

int tasks_parse_id(const char *text, uint32_t *ret, struct err *e)
{
	size_t len = strlen(text);

	if (len != TASKS_ID_MAX_BYTES - 1 || strspn(text, "0123456789abcdef") != len)
		return err_set(
			e, ERR_INVALID,
			"invalid command id '%s' (eight hexadecimal digits, see agentkernel ps)",
			text);
	*ret = (uint32_t)strtoul(text, NULL, 16);
	return 0;
}

int tasks_kill(const struct ak *ak, const char *sandbox, uint32_t id, int number, struct err *e)
{
	const struct order_signal body = { .id = id, .number = number, .is_for_group = 1 };
	CLEANUP(frame_done) struct frame answer = { 0 };
	char what[64];
	int r = ask(ak, sandbox, CONTROL_SIGNAL, &body, sizeof(body), &answer, e);

	(void)snprintf(what, sizeof(what), "%08" PRIx32 " signal %d", id, number);
	lifecycle_audit(ak, AUDITLINE_KILL, sandbox, what, r < 0 ? e : NULL);
	return r;
}

int tasks_stats(const struct ak *ak, const char *sandbox, struct control_stats *ret, struct err *e)
{
	CLEANUP(frame_done) struct frame answer = { 0 };

	if (ask(ak, sandbox, CONTROL_STATS, NULL, 0, &answer, e) < 0)
		return -1;
	if (answer.len != sizeof(*ret))
		return err_set(e, ERR_REMOTE, "the supervisor gave strange figures");
	memcpy(ret, answer.bytes, sizeof(*ret));
	return 0;
}
