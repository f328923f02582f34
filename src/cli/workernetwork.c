/*
 * workernetwork - where sandboxes may connect to, for programs: the log, a question, new rules.
 *
 * Rules can only be changed within the ceiling. Hosts can be allowed only by the callers that have
 * made the sandbox: what the user has put into one of his own may not go to more places because a
 * caller says so. Blocking is open to all who may use it.
 */
#include "cli/worker.h"

#include "base/cleanup.h"
#include "cli/networkview.h"
#include "named/lifecycle.h"
#include "policy/ceiling.h"

int workernetwork_log(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(netlog_sum_done) struct netlog_sum sum = { 0 };
	const char *name = worker_text(w, "name");

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    networkview_sum(w->ak, name, &sum, e) < 0)
		return -1;
	json_open_array(j, "entries");
	for (unsigned i = 0; i < sum.count; i++) {
		const struct netlog_row *row = &sum.rows[i];

		json_open_object(j, NULL);
		json_add_text(j, "decision", row->decision);
		json_add_text(j, "host", row->host);
		json_add_number(j, "port", row->port);
		json_add_text(j, "reason", row->reason);
		if (row->fix[0])
			json_add_text(j, "fix", row->fix);
		json_add_number(j, "count", (int64_t)row->count);
		json_close_object(j);
	}
	json_close_array(j);
	return 0;
}

static int load_policy(struct worker *w, struct policy *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;
	const char *name = worker_text(w, "name");

	named_init(&n);
	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    named_open(w->ak, name, &n, e) < 0)
		return -1;
	return named_load_policy(&n, ret, e);
}

int workernetwork_check(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(policy_done) struct policy own = { 0 };
	CLEANUP(networkview_answer_done) struct networkview_answer answer;
	const struct policy *p = &w->ceiling.policy;

	networkview_answer_init(&answer);
	if (worker_text(w, "name")) {
		if (load_policy(w, &own, e) < 0)
			return -1;
		p = &own;
	}
	if (networkview_decide(p, worker_text(w, "host"), &answer, e) < 0)
		return -1;
	json_add_bool(j, "allowed", answer.is_allowed);
	json_add_text(j, "target", buf_text(&answer.target));
	json_add_text(j, "reason", buf_text(&answer.reason));
	if (answer.fix.len)
		json_add_text(j, "fix", buf_text(&answer.fix));
	return 0;
}

/* Would the sandbox stay within the ceiling? */
static int check_allowed(struct worker *w, const char *name, char *const *patterns, struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };

	named_init(&n);
	if (named_open(w->ak, name, &n, e) < 0 || named_load_policy(&n, &policy, e) < 0)
		return -1;
	if (!worker_is_creators(w, n.creator, WORKER_USES_IT))
		return err_set(
			e, ERR_DENIED,
			"allow: sandbox '%s' was made by others, who alone can allow it more",
			name);
	for (; *patterns; patterns++)
		if (egress_add(&policy.egress, EGRESS_ALLOW, *patterns, EGRESS_PATTERNS, "allow",
			       e) < 0)
			return -1;
	return ceiling_check(&policy, &w->ceiling.policy, WORKER_CEILING_HINT, NULL, e);
}

int workernetwork_change(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");
	cleanup_free char **allow = worker_list(w, "allow");
	cleanup_free char **block = worker_list(w, "block");

	if (!allow && !block)
		return err_set(e, ERR_INVALID, "allow, block: at least one host is expected");
	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    (allow && check_allowed(w, name, allow, e) < 0))
		return -1;
	if (block && lifecycle_change_network(w->ak, name, LIFECYCLE_BLOCK, block, e) < 0)
		return -1;
	if (allow && lifecycle_change_network(w->ak, name, LIFECYCLE_ALLOW, allow, e) < 0)
		return -1;
	json_add_text(j, "name", name);
	json_add_text(j, "note", "the rules hold from now on");
	return 0;
}
