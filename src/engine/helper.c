/*
 * helper - starts the programs in libexec that need large libraries; see helper.h.
 *
 * The child shares our memory until it has executed the helper (vfork), so it only makes system
 * calls; it writes its errno into the plan if the helper could not be executed. We first move
 * descriptors above their final numbers, then the child duplicates them to these numbers and closes
 * everything else in its own table.
 */
#include "engine/helper.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/signals.h"
#include "base/wall.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define EXIT_NOT_EXECUTED 127

int helper_find(const char *name, char **ret_path, struct err *e)
{
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	cleanup_free char *installed = NULL;
	cleanup_free char *built = NULL;
	char *slash;

	if (n < 0)
		return err_sys(e, errno, "find this program");
	own[n] = '\0';
	slash = strrchr(own, '/');
	if (!slash)
		return err_set(e, ERR_NOT_FOUND, "this program has no directory");
	*slash = '\0';
	installed = mem_format("%s/../libexec/agentkernel/%s", own, name);
	built = mem_format("%s/%s", own, name);
	if (access(installed, X_OK) == 0)
		*ret_path = take_ptr(installed);
	else if (access(built, X_OK) == 0)
		*ret_path = take_ptr(built);
	else if (errno != ENOENT)
		return err_sys(e, errno, "look for '%s'", built);
	else
		return err_set(e, ERR_NOT_FOUND, "'%s' is not there: install agentkernel again",
			       installed);
	return 0;
}

int helper_open(const char *name, struct helper *ret, struct err *e)
{
	cleanup_free char *path = NULL;
	int fd;

	*ret = (struct helper){ .fd = -1 };
	if (helper_find(name, &path, e) < 0)
		return -1;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	*ret = (struct helper){ take_ptr(path), fd };
	return 0;
}

void helper_done(struct helper *h)
{
	free(h->path);
	h->path = NULL;
	cleanup_closep(&h->fd);
}

struct plan {
	const char *path;
	int program_fd; /* above the final numbers; -1: none */
	char *const *argv;
	const struct helper_options *options;
	int from[HELPER_DESCRIPTORS_MAX]; /* above the final numbers */
	int to[HELPER_DESCRIPTORS_MAX];
	unsigned count;
	unsigned highest;
	int null_fd;
	int failure; /* errno of the child, if it did not become the helper */
};

static void plan_done(struct plan *p)
{
	for (unsigned i = 0; i < p->count; i++)
		cleanup_closep(&p->from[i]);
	cleanup_closep(&p->null_fd);
	cleanup_closep(&p->program_fd);
}

static int plan_descriptors(struct plan *p, const struct helper_descriptor *d, unsigned count,
			    int program_fd, struct err *e)
{
	cleanup_fd int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int free_from;

	p->highest = STDERR_FILENO;
	for (unsigned i = 0; i < count; i++)
		if ((unsigned)d[i].as > p->highest)
			p->highest = (unsigned)d[i].as;
	free_from = (int)p->highest + 1;
	p->null_fd = null_fd < 0 ? -1 : fcntl(null_fd, F_DUPFD_CLOEXEC, free_from);
	if (p->null_fd < 0)
		return err_sys(e, errno, "open /dev/null for a helper");
	if (program_fd >= 0) {
		p->program_fd = fcntl(program_fd, F_DUPFD_CLOEXEC, free_from);
		if (p->program_fd < 0)
			return err_sys(e, errno, "duplicate the descriptor of a helper");
	}
	for (unsigned i = 0; i < count; i++) {
		int fd = fcntl(d[i].fd >= 0 ? d[i].fd : p->null_fd, F_DUPFD_CLOEXEC, free_from);

		if (fd < 0)
			return err_sys(e, errno, "duplicate a descriptor for a helper");
		p->from[p->count] = fd;
		p->to[p->count++] = d[i].as;
	}
	return 0;
}

static _Noreturn void give_up(struct plan *p)
{
	p->failure = errno;
	_exit(EXIT_NOT_EXECUTED);
}

/* Closes all but the helper's descriptors and, until it is executed, its program. */
static int close_others(const struct plan *p)
{
	unsigned first = p->highest + 1, program = (unsigned)p->program_fd;

	if (p->program_fd < 0)
		return (int)syscall(SYS_close_range, first, ~0u, 0);
	if (program > first && syscall(SYS_close_range, first, program - 1, 0) < 0)
		return -1;
	return (int)syscall(SYS_close_range, program + 1, ~0u, 0);
}

static void execute(const struct plan *p)
{
	char *const *environ_list =
		p->options->environ_list ? p->options->environ_list : wall_environment();

	/* ENOENT: a script, as tests use in place of a helper, is opened by its name */
	if (p->program_fd >= 0 && fexecve(p->program_fd, p->argv, environ_list) < 0 &&
	    errno != ENOENT)
		return;
	(void)execve(p->path, p->argv, environ_list);
}

static _Noreturn void become(struct plan *p)
{
	/* it must not run with a wrong descriptor under one of these numbers */
	for (int stream = 0; stream <= STDERR_FILENO; stream++)
		if (dup2(p->null_fd, stream) < 0)
			give_up(p);
	for (unsigned i = 0; i < p->count; i++)
		if (dup2(p->from[i], p->to[i]) < 0)
			give_up(p);
	if (close_others(p) < 0)
		give_up(p);
	if (!p->options->is_in_session)
		(void)setsid();
	signals_reset();
	execute(p);
	give_up(p);
}

int helper_start(const struct helper *h, char *const *argv,
		 const struct helper_descriptor *descriptors, unsigned count,
		 const struct helper_options *options, pid_t *ret_pid, struct err *e)
{
	CLEANUP(plan_done)
	struct plan p = {
		.path = h->path, .program_fd = -1, .argv = argv, .options = options, .null_fd = -1
	};
	pid_t pid;

	assert(count <= HELPER_DESCRIPTORS_MAX);
	if (plan_descriptors(&p, descriptors, count, h->fd, e) < 0)
		return -1;
	pid = vfork();
	if (pid == 0)
		become(&p);
	if (pid < 0)
		return err_sys(e, errno, "start '%s'", h->path);
	if (p.failure != 0) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
		return err_sys(e, p.failure, "start '%s'", h->path);
	}
	*ret_pid = pid;
	return 0;
}
