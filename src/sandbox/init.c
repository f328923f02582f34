/* init - pid 1 of a sandbox; see init.h. */
#include "sandbox/init.h"

#include "base/cleanup.h"
#include "base/dialin.h"
#include "base/err.h"
#include "base/wall.h"
#include "sandbox/command.h"
#include "host/privs.h"
#include "protocol/report.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Once the command has the streams, init moves its own descriptors to their numbers. */
enum { KEPT_REPORT_FD, KEPT_LIFELINE_FD, KEPT_LOCK_FD, KEPT_DIAL_FD, KEPT_COUNT };

#define EXIT_SETUP_FAILED 125

/* Moves them after the others, each to a lower number, so none is overwritten. */
static int keep_watched(struct watch_limits *watch, struct err *e)
{
	for (unsigned i = 0; i < watch->tmpfs_count; i++) {
		int kept = KEPT_COUNT + (int)i;

		if (watch->tmpfs_fd[i] != kept && dup2(watch->tmpfs_fd[i], kept) < 0)
			return err_sys(e, errno, "keep init's descriptors");
		watch->tmpfs_fd[i] = kept;
	}
	return 0;
}

static int keep_only(const struct init_options *o, struct watch_limits *watch, struct err *e)
{
	if (dup2(o->report_fd, KEPT_REPORT_FD) < 0 || dup2(o->lifeline_fd, KEPT_LIFELINE_FD) < 0)
		return err_sys(e, errno, "keep init's descriptors");
	if (o->lock_fd < 0)
		(void)close(KEPT_LOCK_FD);
	else if (dup2(o->lock_fd, KEPT_LOCK_FD) < 0)
		return err_sys(e, errno, "keep init's descriptors");
	if (o->dial_fd < 0)
		(void)close(KEPT_DIAL_FD);
	else if (dup2(o->dial_fd, KEPT_DIAL_FD) < 0)
		return err_sys(e, errno, "keep init's descriptors");
	if (keep_watched(watch, e) < 0)
		return -1;
	if (syscall(SYS_close_range, (unsigned)KEPT_COUNT + watch->tmpfs_count, ~0u, 0) < 0)
		return err_sys(e, errno, "close init's descriptors");
	return 0;
}

/* Called before the command starts, so that the SIGCHLD of a very short command is not lost. */
static int block_signals(sigset_t *all, struct err *e)
{
	sigfillset(all);
	if (sigprocmask(SIG_BLOCK, all, NULL) < 0)
		return err_sys(e, errno, "block signals in init");
	return 0;
}

static int open_signals(const sigset_t *all, int *ret_fd, struct err *e)
{
	int fd = signalfd(-1, all, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		return err_sys(e, errno, "wait for signals in init");
	*ret_fd = fd;
	return 0;
}

/* Reaps all ended children; true, with its status, if the command was among them. */
static bool reap(pid_t command_pid, int *ret_status)
{
	bool has_ended = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR)) {
		if (pid != command_pid)
			continue;
		*ret_status = status;
		has_ended = true;
	}
	return has_ended;
}

/* Terminal stop signals become SIGSTOP: no shell in the command's session would handle them. */
static int translate(int number)
{
	return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU ? SIGSTOP : number;
}

static void pass_on(pid_t command_pid, const struct signalfd_siginfo *info)
{
	bool is_for_group = info->ssi_code == SI_QUEUE && info->ssi_int == INIT_TO_GROUP;

	/* Ignore signals from inside: only a sender outside this pid namespace has ssi_pid 0. */
	if (info->ssi_pid != 0 || info->ssi_signo == SIGCHLD)
		return;
	if (!is_for_group || kill(-command_pid, translate((int)info->ssi_signo)) < 0)
		(void)kill(command_pid, translate((int)info->ssi_signo));
}

/* Returns the command's wait status; ends the sandbox at a limit or when the supervisor is gone. */
static int wait_for_end(pid_t command_pid, int signal_fd, bool takes_dials,
			const struct watch_limits *watch)
{
	struct pollfd polled[] = {
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = KEPT_LIFELINE_FD, .events = POLLIN },
		{ .fd = takes_dials ? KEPT_DIAL_FD : -1, .events = POLLIN },
	};
	struct signalfd_siginfo info;
	enum report_limit reached;
	struct err e = { 0 };
	int status = 0;

	for (;;) {
		if (poll(polled, COUNT_OF(polled), watch_interval_ms(watch)) < 0 &&
		    errno != EINTR) {
			(void)err_sys(&e, errno, "wait in init");
			report_failed(KEPT_REPORT_FD, &e);
			_exit(EXIT_SETUP_FAILED);
		}
		if (polled[1].revents && wall_stands(WALL_LIFELINE))
			_exit(EXIT_SETUP_FAILED); /* the supervisor is gone: end the sandbox */
		if (polled[2].revents && !dialin_answer_all(KEPT_DIAL_FD))
			polled[2].fd = -1;
		while (read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
			pass_on(command_pid, &info);
		if (reap(command_pid, &status))
			return status;
		reached = watch_check(watch);
		if (reached != REPORT_LIMIT_NONE) {
			report_limit_reached(KEPT_REPORT_FD, reached);
			_exit(EXIT_SETUP_FAILED);
		}
	}
}

/*
 * vfork, not fork: copying even our small address space costs more than the steps to exec. The
 * child borrows this stack until then and command_exec() never returns into it.
 */
static int start_command(const struct init_options *o, pid_t *ret_pid, struct err *e)
{
	pid_t pid = vfork();

	if (pid == 0)
		command_exec(o->command, o->report_fd);
	if (pid < 0)
		return err_sys(e, errno, "start the command");
	*ret_pid = pid;
	return 0;
}

void init_run(const struct init_options *o)
{
	struct watch_limits watch = o->watch;
	struct err e = { 0 };
	int report_fd = o->report_fd;
	int signal_fd = -1;
	pid_t command_pid = 0;
	sigset_t all;

	watch_open(&watch);
	if (block_signals(&all, &e) < 0 || start_command(o, &command_pid, &e) < 0 ||
	    keep_only(o, &watch, &e) < 0)
		goto out;
	report_fd = KEPT_REPORT_FD;
	if (privs_drop_init(o->watch.memory_bytes ? PRIVS_WATCHES : 0, &e) < 0 ||
	    privs_die_with_parent(&e) < 0 || open_signals(&all, &signal_fd, &e) < 0)
		goto out;
	report_ended(report_fd, wait_for_end(command_pid, signal_fd, o->dial_fd >= 0, &watch), 0);
	_exit(0);
out:
	report_failed(report_fd, &e);
	_exit(EXIT_SETUP_FAILED);
}
