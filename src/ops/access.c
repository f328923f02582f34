/* access - what a caller may do with an existing sandbox or checkpoint; see access.h. */
#include "ops/access.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/path.h"
#include "named/checkpoint.h"
#include "named/inventory.h"
#include "named/lifecycle.h"
#include "named/named.h"
#include "policy/ceiling.h"
#include "state/ak.h"

#include <string.h>

/* ---- paths inside ---- */

int access_resolve_path_by(const struct policy *p, const char *text, char **ret, struct err *e)
{
	char *path;

	if (text && text[0] == '/') {
		*ret = mem_dup(text);
		return 0;
	}
	if (text && text[0] == '~' && text[1] && text[1] != '/')
		return err_set(e, ERR_INVALID,
			       "'%.200s': only ~ and ~/... are known, the home of the sandbox's "
			       "user",
			       text);
	if (text && text[0] == '~')
		path = path_absolute(p->home_dir, text[1] ? text + 2 : ".");
	else
		path = path_absolute(p->workdir, text ? text : ".");
	if (!path)
		return err_set(e, ERR_INVALID, "'%.200s' leads above the root directory", text);
	*ret = path;
	return 0;
}

int access_resolve_path(const struct ak *ak, const char *sandbox, const char *text, char **ret,
			struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };

	named_init(&n);
	if (text && text[0] == '/') {
		*ret = mem_dup(text);
		return 0;
	}
	if (named_open(ak, sandbox, &n, e) < 0 || named_load_policy(&n, &policy, e) < 0)
		return -1;
	return access_resolve_path_by(&policy, text, ret, e);
}

/* ---- words ---- */

const char *access_ceiling_owner(const struct ak *ak)
{
	return ak->view.is_for_library ? "the ceiling" : "the server";
}

const char *access_ceiling_hint(const struct ak *ak)
{
	return ak->view.is_for_library
		       ? "only agentkernel.toml and the ceiling given to agentkernel_open() can "
			 "allow more"
		       : "only the user can allow more, in agentkernel.toml or with options of the "
			 "server";
}

/* ---- sandboxes ---- */

bool access_is_creators(const struct ak *ak, const char *creator, enum access_use use)
{
	return creator && (use == ACCESS_ENDS_IT || strcmp(creator, ak->view.creator) == 0);
}

int access_check_sandbox(struct ak *ak, const char *name, enum access_use use, struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };

	named_init(&n);
	if (!ak->ceiling)
		return 0;
	if (named_check_name(name, e) < 0 || named_open(ak, name, &n, e) < 0)
		return -1;
	if (!access_is_creators(ak, n.creator, use)) {
		if (named_load_policy(&n, &policy, e) < 0)
			return -1;
		if (ceiling_check(&policy, ak->ceiling, access_ceiling_hint(ak), NULL, e) < 0)
			return err_wrap(e, "sandbox '%s' may do more than you", name);
	}
	named_pin(ak, &n); /* later lookups of the name find only the checked sandbox */
	return 0;
}

int access_check_user(const struct ak *ak, const char *user, struct err *e)
{
	const char *most = ak->ceiling ? ak->ceiling->user_text : NULL;

	if (!user || !ak->ceiling || ceiling_allows_root(ak->ceiling) ||
	    (most && strcmp(user, most) == 0))
		return 0;
	return err_set(e, ERR_DENIED, "user: %s does not let you choose one",
		       access_ceiling_owner(ak));
}

int access_check_checkpoint(const struct ak *ak, const struct checkpoint *c, struct err *e)
{
	CLEANUP(policy_done) struct policy policy = { 0 };

	if (!ak->ceiling || access_is_creators(ak, c->creator, ACCESS_ENDS_IT))
		return 0;
	if (checkpoint_load_policy(ak, c->id, &policy, e) < 0)
		return e->code == ERR_NOT_FOUND
			       ? err_set(e, ERR_DENIED, "checkpoint '%s' was imported by the user",
					 c->id)
			       : -1;
	if (ceiling_check(&policy, ak->ceiling, access_ceiling_hint(ak), NULL, e) < 0)
		return err_wrap(e, "checkpoint '%s' is of a sandbox that may do more than you",
				c->id);
	return 0;
}

/* A dozing one is woken by its supervisor, when it is asked for something. */
static bool is_usable(enum named_state state)
{
	return state == NAMED_RUNNING || state == NAMED_DOZING;
}

int access_need_running(struct ak *ak, const char *name, struct err *e)
{
	CLEANUP(inventory_entry_done) struct inventory_entry entry = { 0 };

	if (access_check_sandbox(ak, name, ACCESS_USES_IT, e) < 0 ||
	    inventory_info(ak, name, &entry, e) < 0)
		return -1;
	if (is_usable(entry.state))
		return 0;
	if (lifecycle_start(ak, name, e) == 0)
		return 0;
	/* another call may have started it meanwhile */
	inventory_entry_done(&entry);
	entry = (struct inventory_entry){ 0 };
	if (e->code == ERR_BUSY && inventory_info(ak, name, &entry, e) == 0 &&
	    is_usable(entry.state))
		return 0;
	return -1;
}

uint64_t access_timeout_ms(const struct ak *ak, uint64_t asked_ms)
{
	uint64_t most_ms = ak->ceiling ? ak->ceiling->timeout_ms : 0;

	return most_ms && (asked_ms == 0 || asked_ms > most_ms) ? most_ms : asked_ms;
}
