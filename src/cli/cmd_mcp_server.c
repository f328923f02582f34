/* cmd_mcp_server - agentkernel mcp server: sandboxes as tools for coding agents. */
#include "base/cleanup.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "engine/helper.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const examples[] = {
	"agentkernel mcp server",
	"on standard input and output, as an MCP client starts it ('agentkernel plugin install' "
	"tells yours)",
	"agentkernel mcp server --profile restrictive --workspace",
	"no sandbox of any caller may do more than that",
	NULL,
};

struct words {
	char **list;
	size_t count;
};

/* Takes `text`. */
static void add(struct words *w, char *text)
{
	w->list = mem_grow(w->list, w->count + 2, sizeof(*w->list));
	w->list[w->count++] = text;
	w->list[w->count] = NULL;
}

static void words_done(struct words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->list[i]);
	free(w->list);
}

static void add_rate(struct words *w, const struct toolpolicy *t)
{
	if (t->rate_calls == 0)
		return;
	add(w, mem_dup("--rate"));
	add(w, mem_format("%" PRIu64 ":%" PRIu64, t->rate_calls, t->rate_window_ms));
}

/* What was typed, so that each call starts from it and from the files as they are then. */
static void add_ceiling(struct words *w, const struct request *r, size_t typed_count)
{
	for (size_t i = 0; i < typed_count; i++) {
		const struct policy_setting *s = &r->settings.list[i];

		add(w, s->text ? mem_format("ceiling=%s=%s", policy_field_name(s->field), s->text)
			       : mem_format("ceiling=%s", policy_field_name(s->field)));
	}
	if (r->flags.config)
		add(w, mem_format("config=%s", r->flags.config));
	if (r->flags.has_no_config)
		add(w, mem_dup("no-config=yes"));
	add_rate(w, &r->config.user.tools);
	add_rate(w, &r->config.project.tools);
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(request_done) struct request request = { 0 };
	CLEANUP(words_done) struct words words = { 0 };
	cleanup_free char *helper = NULL;
	char launcher[PATH_MAX];
	const char *none[1];
	unsigned count = 0;
	size_t typed_count;
	ssize_t len;

	if (request_collect(&request_policy_options, argv, context->environ_list, &request, none, 0,
			    &count, e) < 0)
		return -1;
	typed_count = request.settings.count;
	if (request_resolve(&request, NULL, e) < 0 ||
	    helper_find("agentkernel-mcp", &helper, e) < 0)
		return -1;
	len = readlink("/proc/self/exe", launcher, sizeof(launcher) - 1);
	if (len < 0)
		return err_sys(e, errno, "find this program");
	launcher[len] = '\0';
	add(&words, mem_dup("agentkernel-mcp"));
	add(&words, mem_dup(launcher));
	add_ceiling(&words, &request, typed_count);
	*ret_status = 0;
	(void)execve(helper, words.list, context->environ_list);
	return err_sys(e, errno, "start '%s'", helper);
}

const struct cli_command cmd_mcp_server = {
	.name = "mcp server",
	.summary = "serve sandboxes as tools to an MCP client, on standard input and output",
	.usage = "[run's options]",
	.text = "The options and agentkernel.toml are the ceiling: what they do not allow no "
		"caller can\n"
		"get. Both revisions of the protocol are spoken, with and without the initialize\n"
		"handshake. When the client closes standard input, or cancels a call, the "
		"sandboxes "
		"of\n"
		"the calls that run are gone.",
	.examples = examples,
	.options = &request_policy_options,
	.run = run,
};
