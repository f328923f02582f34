/* fetchstep - fetches an address in a sandbox; see fetchstep.h. */
#include "build/fetchstep.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "engine/run.h"
#include "policy/policyimage.h"

#include <errno.h>
#include <unistd.h>

#define PLACE "/run/agentkernel-fetch"

/* The request's policy among this machine's programs, with nothing of the caller's. */
static int shape_policy(const struct fetchstep *s, struct err *e)
{
	struct policy *p = s->policy;

	if (!p->has_network)
		return err_set(e, ERR_DENIED, "it needs a network, and the build has none");
	p->workspace = p->home = p->user_text = NULL;
	p->publish = p->places = p->passed = NULL;
	p->passes_env = p->is_clone = p->is_workdir_asked = p->is_read_only = false;
	p->tmpfs_count = 0;
	p->mount_count = 1;
	p->mounts[0] = (struct policy_mount){ mem_dup(s->program), mem_dup(PLACE), true, true };
	return policyimage_use_host(p, "fetch", e);
}

int fetchstep_run(const struct fetchstep *s, struct err *e)
{
	cleanup_free char *name = mem_format("name=%s", s->address);
	cleanup_free char *as = mem_format("as=%s", s->checksum ? s->checksum : ".");
	char *const argv[] = { (char *)PLACE, (char *)"fetch", name, as, NULL };
	CLEANUP(run_result_done) struct run_result result = { 0 };
	const struct run_options options = {
		.policy = s->policy,
		.ak = s->ak,
		.argv = argv,
		.tty = STREAMS_TTY_OFF,
		.lifeline_fd = s->lifeline_fd,
	};

	if (shape_policy(s, e) < 0)
		return -1;
	if (dup2(s->out_fd, STDOUT_FILENO) < 0)
		return err_sys(e, errno, "write what is fetched");
	if (run_command(&options, &result, e) < 0)
		return -1;
	if (result.exit_code == 0)
		return 0;
	if (result.denial_count)
		return err_set(e, ERR_DENIED, "the network policy denied %.100s: %.100s%s%.60s%s",
			       result.denials[0].host, result.denials[0].reason,
			       result.denials[0].fix[0] ? " (add " : "", result.denials[0].fix,
			       result.denials[0].fix[0] ? ")" : "");
	return err_set(e, ERR_REMOTE, "fetching '%.200s' failed", s->address);
}
