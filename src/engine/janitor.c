/* janitor - removes a killed supervisor's cgroups; see janitor.h. */
#include "engine/janitor.h"

#include "sandbox/cgroup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A pidfd becomes readable when its process ends, whoever that process is to us. */
static _Noreturn void janitor_main(struct cgroup *c, int supervisor_fd)
{
	struct pollfd polled = { .fd = supervisor_fd, .events = POLLIN };
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	(void)setsid();
	for (int stream = 0; stream < 3; stream++)
		(void)close(stream); /* a reader of the caller's output must see its end */
	while (poll(&polled, 1, -1) < 0 && errno == EINTR)
		continue;
	cgroup_remove(c);
	_exit(0);
}

int janitor_start(struct janitor *j, struct cgroup *c, struct err *e)
{
	int supervisor_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (supervisor_fd < 0)
		return err_sys(e, errno, "open a descriptor of this process");
	j->pid = fork();
	if (j->pid == 0)
		janitor_main(c, supervisor_fd);
	(void)close(supervisor_fd);
	if (j->pid < 0) {
		j->pid = 0;
		return err_sys(e, errno, "start the janitor");
	}
	return 0;
}

void janitor_dismiss(struct janitor *j)
{
	if (j->pid == 0)
		return;
	(void)kill(j->pid, SIGKILL); /* our child, not yet waited for: the pid is still its own */
	while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	j->pid = 0;
}
