/* order - messages between a supervisor and a serving init; see order.h. */
#include "protocol/order.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <string.h>

static void add_text(struct buf *out, const char *text)
{
	buf_add(out, text, strlen(text) + 1);
}

static uint32_t count_texts(char *const *list)
{
	uint32_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

void order_format_command(const struct order_command *c, const char *workdir, char *const *argv,
			  char *const *envp, struct buf *out)
{
	struct order_command counted = *c;

	counted.argc = count_texts(argv);
	counted.envc = count_texts(envp);
	buf_add(out, &counted, sizeof(counted));
	add_text(out, workdir);
	for (uint32_t i = 0; i < counted.argc; i++)
		add_text(out, argv[i]);
	for (uint32_t i = 0; i < counted.envc; i++)
		add_text(out, envp[i]);
}

void order_texts_done(struct order_texts *t)
{
	free(t->texts);
	free(t->argv);
	free(t->envp);
	*t = (struct order_texts){ 0 };
}

/* Returns the next NUL-terminated text, or NULL if there is none. */
static char *next_text(char **at, const char *end)
{
	char *text = *at;

	if (text >= end)
		return NULL;
	*at = text + strlen(text) + 1;
	return text;
}

static char **read_list(uint32_t count, char **at, const char *end)
{
	char **list = mem_alloc(((size_t)count + 1) * sizeof(*list));

	for (uint32_t i = 0; i < count; i++) {
		list[i] = next_text(at, end);
		if (list[i])
			continue;
		free(list);
		return NULL;
	}
	return list;
}

static bool is_right(const struct order_command *c, const struct order_texts *t)
{
	if (!t->workdir || t->workdir[0] != '/' || !t->argv || !t->argv[0] || !t->envp)
		return false;
	if (c->uid > POLICY_ID_MAX || c->gid > POLICY_ID_MAX)
		return false;
	for (uint32_t i = 0; i < c->group_count; i++)
		if (c->groups[i] > POLICY_ID_MAX)
			return false;
	return c->timeout_ms <= POLICY_TIMEOUT_MAX_MS;
}

int order_parse_command(const char *bytes, size_t len, struct order_command *ret,
			struct order_texts *ret_texts, struct err *e)
{
	CLEANUP(order_texts_done) struct order_texts t = { 0 };
	struct order_command c;
	size_t text_len;
	char *at;

	if (len <= sizeof(c) || bytes[len - 1] != '\0')
		return err_set(e, ERR_INVALID, "half a command");
	memcpy(&c, bytes, sizeof(c));
	if (c.argc > ORDER_WORDS_MAX || c.envc > ORDER_WORDS_MAX ||
	    c.group_count > POLICY_GROUPS_MAX)
		return err_set(e, ERR_LIMIT, "a command has more than %u words", ORDER_WORDS_MAX);
	text_len = len - sizeof(c);
	t.texts = mem_dup_bytes(bytes + sizeof(c), text_len);
	at = t.texts;
	t.workdir = next_text(&at, t.texts + text_len);
	t.argv = read_list(c.argc, &at, t.texts + text_len);
	t.envp = t.argv ? read_list(c.envc, &at, t.texts + text_len) : NULL;
	if (!is_right(&c, &t) || at != t.texts + text_len)
		return err_set(e, ERR_INVALID, "a command that makes no sense");
	*ret = c;
	*ret_texts = t;
	t = (struct order_texts){ 0 };
	return 0;
}
