/*
 * networkthread - makes the network namespace while the root is mounted; see networkthread.h.
 *
 * The thread has credentials, a network namespace and an error of its own, and shares what the
 * mounts change: the file system root and the descriptors. It starts before the child takes its
 * ids and keeps the caller's for its short life, as root of the sandbox's user namespace: it opens
 * nothing by a path, and no process of the sandbox exists yet.
 *
 * Until it has ended, the other thread must not unmount (mount_drop_old_root): the kernel waits for
 * RCU then, that is for the thread's long system calls, up to a few milliseconds.
 */
#include "sandbox/networkthread.h"

#include "base/cleanup.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (256u << 10) /* with sanitizers; otherwise a few pages are touched */

static _Alignas(64) char stack[STACK_BYTES]; /* one thread per process: saves mapping memory */

static int make(struct networkthread *t, struct err *e)
{
	cleanup_fd int socket_fd = -1;

	if (unshare(CLONE_NEWNET) < 0) {
		if (errno == ENOSPC)
			return err_set(e, ERR_LIMIT,
				       "the limit on network namespaces is reached (see "
				       "/proc/sys/user/max_net_namespaces)");
		return err_sys(e, errno, "create a network namespace");
	}
	socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	t->netns_fd = socket_fd < 0 ? -1 : ioctl(socket_fd, SIOCGSKNS);
	if (t->netns_fd < 0)
		return err_sys(e, errno, "open the network namespace");
	return t->fill(t->context, e);
}

static void *run(void *argument)
{
	struct networkthread *t = argument;

	atomic_store(&t->has_begun, true);
	(void)!make(t, &t->error);
	return NULL;
}

/*
 * The scheduler often queues a new thread behind its creator, although another cpu has just become
 * idle, and it runs only when the creator waits. Forbidding this cpu moves it.
 */
static void move_elsewhere(pthread_t thread)
{
	cpu_set_t others;
	unsigned cpu = 0;

	if (sched_getaffinity(0, sizeof(others), &others) < 0 ||
	    syscall(SYS_getcpu, &cpu, NULL, NULL) < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_CLR(cpu, &others);
	if (CPU_COUNT(&others) > 0)
		(void)pthread_setaffinity_np(thread, sizeof(others), &others);
}

/* The other cpus are busy, and we have nothing left to do but to wait: here it runs at once. */
static void fetch(pthread_t thread)
{
	cpu_set_t this_one;
	unsigned cpu = 0;

	if (syscall(SYS_getcpu, &cpu, NULL, NULL) < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&this_one);
	CPU_SET(cpu, &this_one);
	(void)pthread_setaffinity_np(thread, sizeof(this_one), &this_one);
}

int networkthread_start(struct networkthread *t, networkthread_fn *fill, void *context,
			struct err *e)
{
	pthread_attr_t attributes;
	int error;

	*t = (struct networkthread){ .fill = fill, .context = context, .netns_fd = -1 };
	atomic_init(&t->has_begun, false);
	error = pthread_attr_init(&attributes);
	if (error == 0)
		error = pthread_attr_setstack(&attributes, stack, sizeof(stack));
	if (error == 0)
		error = pthread_create(&t->thread, &attributes, run, t);
	if (error)
		return err_sys(e, error, "start a thread for the network");
	move_elsewhere(t->thread);
	return 0;
}

int networkthread_join(struct networkthread *t, struct err *e)
{
	cleanup_fd int netns_fd = -1;
	int error;

	if (!atomic_load(&t->has_begun))
		fetch(t->thread);
	error = pthread_join(t->thread, NULL);
	if (error)
		return err_sys(e, error, "wait for the thread of the network");
	netns_fd = take_fd(&t->netns_fd);
	if (t->error.code) {
		*e = t->error;
		return -1;
	}
	if (setns(netns_fd, CLONE_NEWNET) < 0)
		return err_sys(e, errno, "enter the network namespace");
	return 0;
}
