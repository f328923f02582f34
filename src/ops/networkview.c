/* networkview - the network log and decisions, for commands and workers; see networkview.h. */
#include "ops/networkview.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "state/statedir.h"
#include "net/ownaddress.h"
#include "policy/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FILE_MAX_BYTES (16u * NETLOG_MAX_BYTES) /* many long-running gates */

/* ---- the log ---- */

/* A missing log counts as empty. */
static int add_file(const char *path, bool is_old, const char *sandbox, struct netlog_sum *sum,
		    struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	char *rest, *line;
	int r = file_read_at(AT_FDCWD, path, FILE_MAX_BYTES, &text, &len);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "read '%s'", path);
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		struct netlog_line parsed;

		if (!netlog_parse_line(line, &parsed))
			continue;
		if (is_old && sum->begins_ms == 0)
			sum->begins_ms = parsed.time_ms;
		if (!sandbox || strcmp(parsed.sandbox, sandbox) == 0)
			netlog_sum_add(sum, &parsed);
	}
	return 0;
}

int networkview_sum(const struct ak *ak, const char *sandbox, struct netlog_sum *ret, struct err *e)
{
	static const char *const files[] = { NETLOG_OLD_FILE, NETLOG_FILE };

	for (size_t i = 0; i < COUNT_OF(files); i++) {
		cleanup_free char *path = NULL;

		if (statedir_path(ak, files[i], &path, e) < 0 ||
		    add_file(path, i == 0, sandbox, ret, e) < 0)
			return -1;
	}
	netlog_sum_sort(ret);
	return 0;
}

/* ---- decisions ---- */

void networkview_answer_init(struct networkview_answer *a)
{
	*a = (struct networkview_answer){ 0 };
	buf_init(&a->target, BUF_TEXT_MAX_BYTES);
	buf_init(&a->reason, BUF_TEXT_MAX_BYTES);
	buf_init(&a->fix, BUF_TEXT_MAX_BYTES);
}

void networkview_answer_done(struct networkview_answer *a)
{
	buf_done(&a->target);
	buf_done(&a->reason);
	buf_done(&a->fix);
}

static void format_target(const struct egress_target *t, struct buf *out)
{
	char text[ADDRESS_TEXT_MAX_BYTES];

	if (t->name)
		buf_addf(out, "%s:%u", t->name, t->port);
	else
		buf_addf(out, t->address.bits == 128 ? "[%s]:%u" : "%s:%u",
			 address_format(&t->address, text), t->port);
}

static const char *find_note(const struct policy *p, const struct egress_target *t,
			     const struct egress_decision *d)
{
	if (t->name && d->is_allowed && !egress_is_host_name(t->name))
		return "its address is checked when it connects: private ones stay blocked";
	if (t->name && d->reason == EGRESS_BY_RULE && p->egress.fallback == EGRESS_ALLOW)
		return "everything else is allowed, so its address can still be reached as a "
		       "number";
	return NULL;
}

/* Asks like the gate does before it connects. */
static enum egress_owner find_owner(const struct egress_target *t)
{
	cleanup_fd int fd = -1;
	struct err ignored;

	if (ownaddress_open(&fd, &ignored) < 0)
		return EGRESS_OWNER_UNKNOWN;
	return ownaddress_ask(fd, &t->address, t->port);
}

static void decide(const struct policy *p, const struct egress_target *t,
		   struct networkview_answer *a)
{
	struct egress_decision d = { 0 };

	format_target(t, &a->target);
	if (!p->has_network) {
		buf_addf(&a->reason, "this sandbox has no network (%s)",
			 p->origin[POLICY_NETWORK].text);
		buf_add_text(&a->fix, "--network");
		return;
	}
	if (t->name)
		egress_decide_name(&p->egress, t->name, t->port, &d);
	else
		egress_decide_address(&p->egress, &t->address, t->port, find_owner(t), &d);
	a->is_allowed = d.is_allowed;
	egress_format_reason(&p->egress, &d, &a->reason);
	egress_format_fix(&d, t->name, t->name ? NULL : &t->address, t->port, &a->fix);
	a->note = find_note(p, t, &d);
}

int networkview_decide(const struct policy *p, const char *target, struct networkview_answer *ret,
		       struct err *e)
{
	CLEANUP(egress_target_done) struct egress_target t = { 0 };

	if (egress_parse_target(target, &t, e) < 0)
		return -1;
	if (t.port == 0)
		t.port = NETWORKVIEW_DEFAULT_PORT;
	decide(p, &t, ret);
	return 0;
}
