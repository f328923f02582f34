/* command - from our code to the user's program; see command.h. */
#include "sandbox/command.h"

#include "base/signals.h"
#include "base/wall.h"
#include "policy/environment.h"
#include "policy/policy.h"
#include "sandbox/landlock.h"
#include "host/privs.h"
#include "protocol/report.h"
#include "host/rlimits.h"
#include "sandbox/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXIT_REPORTED 125
#define COMMAND_REPORT_FD 3

/*
 * The streams become 0, 1, 2 and the report pipe 3 (closed by exec); everything else is closed,
 * also descriptors that our caller left open. Low numbers, because --nofile may allow only a few.
 */
static int place_descriptors(const struct command *c, int *report_fd, struct err *e)
{
	for (int stream = 0; stream < 3; stream++)
		if (c->stdio_fd[stream] != stream && dup2(c->stdio_fd[stream], stream) < 0)
			return err_sys(e, errno, "place stream %d", stream);
	if (*report_fd != COMMAND_REPORT_FD) {
		if (dup3(*report_fd, COMMAND_REPORT_FD, O_CLOEXEC) < 0)
			return err_sys(e, errno, "place the report pipe");
		*report_fd = COMMAND_REPORT_FD;
	}
	if (wall_stands(WALL_DESCRIPTORS_CLOSED) &&
	    syscall(SYS_close_range, COMMAND_REPORT_FD + 1u, ~0u, 0) < 0)
		return err_sys(e, errno, "close all descriptors but three");
	return 0;
}

static int start_session(const struct command *c, struct err *e)
{
	if (wall_stands(WALL_OWN_SESSION) && setsid() < 0)
		return err_sys(e, errno, "start a new session");
	if (c->has_tty && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
		return err_sys(e, errno, "take the terminal");
	return 0;
}

void command_init(struct command *c, const struct policy *p)
{
	*c = (struct command){
		.policy = p,
		.workdir = p->workdir,
		.uid = p->uid,
		.gid = p->gid,
		.groups = p->groups,
		.group_count = p->group_count,
		.has_capabilities = p->has_capabilities,
		.landlock_parts = LANDLOCK_FILES | LANDLOCK_SCOPES,
		.installed_filter = -1,
	};
}

static int enter_workdir(const char *workdir, struct err *e)
{
	if (chdir(workdir) == 0)
		return 0;
	if (errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "no working directory '%s' inside", workdir);
	return err_sys(e, errno, "enter the working directory '%s'", workdir);
}

static int lock_in(const struct command *c, struct err *e)
{
	const struct privs_options privs = {
		.uid = c->uid,
		.gid = c->gid,
		.groups = c->groups,
		.group_count = c->group_count,
		.can_switch_ids = c->can_switch_ids,
		.has_capabilities = c->has_capabilities,
	};

	if (privs_drop(&privs, e) < 0)
		return -1;
	if (enter_workdir(c->workdir, e) < 0)
		return -1;
	if (c->has_landlock && landlock_restrict(c->policy, c->landlock_parts, e) < 0)
		return -1;
	if (c->installed_filter == (int)c->seccomp_variant)
		return 0;
	return seccomp_install(c->seccomp_variant, e); /* on top of init's: both apply */
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int explain(const char *path, int error, struct err *e)
{
	if (error == ENOENT || error == ENOTDIR) {
		/* the file exists, so the interpreter named in its first line is missing */
		if (access(path, F_OK) == 0)
			return err_set(e, ERR_COMMAND_NOT_EXECUTABLE,
				       "'%s' needs an interpreter or loader that is not there",
				       path);
		return err_set(e, ERR_COMMAND_NOT_FOUND,
			       "no command '%s' inside the sandbox, where only what --mount and "
			       "--workspace show of your files exists",
			       path);
	}
	if (is_directory(path))
		return err_set(e, ERR_COMMAND_NOT_EXECUTABLE, "'%s' is a directory", path);
	if (error == ENOEXEC)
		return err_set(e, ERR_COMMAND_NOT_EXECUTABLE,
			       "'%s' is not executable on this machine (a script needs a #! line)",
			       path);
	if (error == EACCES)
		return err_set(e, ERR_COMMAND_NOT_EXECUTABLE, "'%s' is not executable", path);
	(void)err_sys(e, error, "run '%s'", path);
	e->code = ERR_COMMAND_NOT_EXECUTABLE;
	return -1;
}

/* Result of the search through PATH: the first file that exists but cannot be executed. */
struct search {
	int error; /* 0: none found yet */
	char path[PATH_MAX];
};

static void try_in(const struct command *c, const char *dir, size_t dir_len, struct search *s)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%.*s%s%s", (int)dir_len, dir, dir_len ? "/" : "./",
			 c->argv[0]);
	int error;

	if (n < 0 || (size_t)n >= sizeof(path))
		return;
	(void)execve(path, c->argv, c->envp);
	error = errno;
	if (s->error == 0 && access(path, F_OK) == 0 && !is_directory(path)) {
		s->error = error;
		memcpy(s->path, path, (size_t)n + 1);
	}
}

static int search_and_exec(const struct command *c, struct err *e)
{
	const char *dirs = environment_get(c->envp, "PATH");
	struct search s = { 0 };

	if (!dirs)
		dirs = ENVIRONMENT_PATH;
	for (;;) {
		size_t len = strcspn(dirs, ":");

		try_in(c, dirs, len, &s);
		if (dirs[len] == '\0')
			break;
		dirs += len + 1;
	}
	if (s.error)
		return explain(s.path, s.error, e);
	return err_set(e, ERR_COMMAND_NOT_FOUND, "no command '%s' inside the sandbox", c->argv[0]);
}

static int exec_program(const struct command *c, struct err *e)
{
	if (c->argv[0][0] == '\0')
		return err_set(e, ERR_COMMAND_NOT_FOUND, "the command is empty");
	if (!strchr(c->argv[0], '/'))
		return search_and_exec(c, e);
	(void)execve(c->argv[0], c->argv, c->envp);
	return explain(c->argv[0], errno, e);
}

void command_exec(const struct command *c, int report_fd)
{
	struct err e = { 0 };

	if (wall_stands(WALL_DEFINED_START))
		(void)umask(022);
	if (place_descriptors(c, &report_fd, &e) == 0 && start_session(c, &e) == 0 &&
	    rlimits_apply(c->policy, c->rlimit_flags, &e) == 0) {
		if (wall_stands(WALL_DEFINED_START))
			signals_reset();
		if (lock_in(c, &e) == 0)
			(void)exec_program(c, &e);
	}
	report_failed(report_fd, &e);
	_exit(EXIT_REPORTED);
}
