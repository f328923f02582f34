/* op_network - network log, decisions and rules of sandboxes; see op_network.h. */
#include "ops/op_network.h"

#include "base/cleanup.h"
#include "named/named.h"
#include "ops/access.h"
#include "policy/ceiling.h"
#include "state/ak.h"

int op_network_log(struct ak *ak, const struct op_network_log_args *args,
		   const struct op_events *ev, struct netlog_sum *ret, struct err *e)
{
	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	return networkview_sum(ak, args->name, ret, e);
}

static int load_policy(struct ak *ak, const char *name, struct policy *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (access_check_sandbox(ak, name, ACCESS_USES_IT, e) < 0 ||
	    named_open(ak, name, &n, e) < 0)
		return -1;
	return named_load_policy(&n, ret, e);
}

int op_network_check(struct ak *ak, const struct op_network_check_args *args,
		     const struct op_events *ev, struct networkview_answer *ret, struct err *e)
{
	CLEANUP(policy_done) struct policy own = { 0 };

	(void)ev;
	if (args->name && load_policy(ak, args->name, &own, e) < 0)
		return -1;
	return networkview_decide(args->name ? &own : args->policy, args->target, ret, e);
}

/* Would the sandbox still be within the ceiling? */
static int check_allowed(const struct ak *ak, const char *name, char *const *patterns,
			 struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };

	named_init(&n);
	if (!ak->ceiling)
		return 0;
	if (named_open(ak, name, &n, e) < 0 || named_load_policy(&n, &policy, e) < 0)
		return -1;
	if (!access_is_creators(ak, n.creator, ACCESS_USES_IT))
		return err_set(
			e, ERR_DENIED,
			"allow: sandbox '%s' was made by others, who alone can allow it more",
			name);
	for (; *patterns; patterns++)
		if (egress_add(&policy.egress, EGRESS_ALLOW, *patterns, EGRESS_PATTERNS, "allow",
			       e) < 0)
			return -1;
	return ceiling_check(&policy, ak->ceiling, access_ceiling_hint(ak), NULL, e);
}

int op_network_change(struct ak *ak, const struct op_network_change_args *args,
		      const struct op_events *ev, struct err *e)
{
	char *const none[] = { NULL };

	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    (args->allow && check_allowed(ak, args->name, args->allow, e) < 0))
		return -1;
	if (args->resets)
		return reconfigure_network(ak, args->name, RECONFIGURE_RESET, none, e);
	if (args->block &&
	    reconfigure_network(ak, args->name, RECONFIGURE_BLOCK, args->block, e) < 0)
		return -1;
	return args->allow ? reconfigure_network(ak, args->name, RECONFIGURE_ALLOW, args->allow, e)
			   : 0;
}
