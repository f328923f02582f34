/*
 * clonestep - clones a repository; see clonestep.h.
 *
 * Hostile input: the address, whose words never become options, and the repository, of which
 * nothing is run: a clone has no hooks, and the context is read as any other.
 */
#include "build/clonestep.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "engine/run.h"
#include "policy/policyimage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE "/clone"

/* In the child: the supervisor of the sandbox. */
static int clone_in(const struct ak *ak, struct policy *p, const char *address, const char *ref,
		    const char *dir, struct err *e)
{
	static const char script[] =
		"set -e; export GIT_TERMINAL_PROMPT=0; cd " PLACE "; git init -q .; "
		"git fetch -q --depth 1 --no-tags -- \"$1\" \"$2\" 2>/tmp/why || "
		"git fetch -q --no-tags -- \"$1\" \"$2\" || { cat /tmp/why; exit 1; }; "
		"git checkout -q FETCH_HEAD";
	char *const argv[] = { (char *)"/bin/sh",
			       (char *)"-c",
			       (char *)(uintptr_t)script,
			       (char *)"sh",
			       (char *)(uintptr_t)address,
			       (char *)(uintptr_t)ref,
			       NULL };
	CLEANUP(run_result_done) struct run_result result = { 0 };
	const struct run_options options = {
		.policy = p, .ak = ak, .argv = argv, .tty = STREAMS_TTY_OFF
	};

	if (!p->has_network)
		return err_set(e, ERR_DENIED, "it needs a network, and the build has none");
	p->workspace = p->home = p->user_text = NULL;
	p->publish = p->places = p->passed = NULL;
	p->passes_env = p->is_clone = p->is_workdir_asked = p->is_read_only = false;
	p->tmpfs_count = 0;
	p->mount_count = 1;
	p->mounts[0] = (struct policy_mount){ mem_dup(dir), mem_dup(PLACE), false, true };
	if (policyimage_use_host(p, "clone", e) < 0 || run_command(&options, &result, e) < 0)
		return -1;
	if (result.exit_code == 0)
		return 0;
	if (result.denial_count)
		return err_set(e, ERR_DENIED, "the network policy denied %.100s: %.100s%s%.60s%s",
			       result.denials[0].host, result.denials[0].reason,
			       result.denials[0].fix[0] ? " (add " : "", result.denials[0].fix,
			       result.denials[0].fix[0] ? ")" : "");
	return err_set(e, ERR_REMOTE, "git failed with exit status %d", result.exit_code);
}

static _Noreturn void child_main(const struct ak *ak, struct policy *p, const char *address,
				 const char *ref, const char *dir, int report_fd)
{
	struct err e = { 0 };
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)dup2(null_fd, STDIN_FILENO);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	if (clone_in(ak, p, address, ref, dir, &e) == 0)
		e.code = ERR_NONE;
	(void)!file_write_all(report_fd, &e, sizeof(e));
	_exit(0);
}

int clonestep_run(const struct ak *ak, struct policy *policy, const char *address, const char *dir,
		  char **ret_subdir, struct err *e)
{
	const char *mark = strchr(address, '#');
	cleanup_free char *plain =
		mem_dup_bytes(address, mark ? (size_t)(mark - address) : strlen(address));
	const char *colon = mark ? strchr(mark + 1, ':') : NULL;
	size_t ref_len = mark ? (colon ? (size_t)(colon - mark - 1) : strlen(mark + 1)) : 0;
	cleanup_free char *ref = ref_len ? mem_dup_bytes(mark + 1, ref_len) : mem_dup("HEAD");
	struct err told = { 0 };
	int ends[2];
	bool is_whole;
	pid_t pid;

	if (plain[0] == '-' || ref[0] == '-')
		return err_set(e, ERR_INVALID, "'%.200s' is no address", address);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	pid = fork();
	if (pid == 0)
		child_main(ak, policy, plain, ref, dir, ends[1]);
	(void)close(ends[1]);
	is_whole = pid > 0 && file_read_exactly(ends[0], &told, sizeof(told));
	(void)close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (!is_whole)
		return err_set(e, ERR_SYSTEM, "the process that clones died");
	if (told.code != ERR_NONE) {
		err_sanitize(&told);
		*e = told;
		return err_wrap(e, "clone '%.200s'", address);
	}
	*ret_subdir = mem_dup(colon ? colon + 1 : "");
	return 0;
}
