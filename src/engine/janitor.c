/* janitor - removes a killed supervisor's cgroups; see janitor.h. */
#include "engine/janitor.h"

#include "base/mem.h"
#include "base/title.h"
#include "host/cgroup.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES 16384

/*
 * The janitor's memory, which the supervisor does not touch while both live. They also share errno:
 * the janitor makes no call that can fail until the supervisor is dead.
 */
struct janitor_memory {
	struct cgroup cgroup; /* descriptors have the same numbers in the janitor's own table */
	int supervisor_fd;
	int init_fd; /* -1: init is not frozen and ends by itself */
	_Alignas(16) char stack[STACK_BYTES];
};

/* A pidfd becomes readable when its process ends, even if it is not our child. */
static int janitor_main(void *memory)
{
	struct janitor_memory *m = memory;
	struct pollfd polled = { .fd = m->supervisor_fd, .events = POLLIN };
	sigset_t all;

	title_set_name("ak-janitor");
	sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	for (int stream = 0; stream < 3; stream++)
		(void)close(stream); /* so that a reader of the caller's output sees end of file */
	while (poll(&polled, 1, -1) < 0)
		continue;
	if (m->init_fd >= 0)
		(void)syscall(SYS_pidfd_send_signal, m->init_fd, SIGKILL, NULL, 0);
	cgroup_thaw_for_end(&m->cgroup);
	cgroup_remove(&m->cgroup);
	_exit(0);
}

int janitor_start(struct janitor *j, const struct cgroup *c, int init_fd, struct err *e)
{
	struct janitor_memory *m = mem_alloc(sizeof(*m));
	pid_t pid;
	int sys;

	j->memory = m;
	m->cgroup = *c;
	m->init_fd = init_fd;
	m->supervisor_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (m->supervisor_fd < 0)
		return err_sys(e, errno, "open a descriptor of this process");
	pid = clone(janitor_main, m->stack + STACK_BYTES, CLONE_VM | SIGCHLD, m);
	sys = errno;
	(void)close(m->supervisor_fd);
	if (pid < 0)
		return err_sys(e, sys, "start the janitor");
	j->pid = pid;
	/* set by us before there is a cgroup: SIGKILL to our process group must not end both */
	if (setpgid(pid, pid) < 0)
		return err_sys(e, errno, "give the janitor a process group");
	return 0;
}

void janitor_dismiss(struct janitor *j)
{
	if (j->pid > 0) {
		/* our child, not yet reaped: the pid cannot be reused */
		if (kill(j->pid, SIGKILL) < 0 && kill(j->pid, SIGKILL) < 0)
			return; /* it uses our memory, and ends with us */
		while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
		j->pid = 0;
	}
	free(j->memory);
	j->memory = NULL;
}
