/* layerworker - runs this program as a worker for image files; see layerworker.h. */
#include "image/layerworker.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "image/tool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define OUT_OF_THE_WAY 64 /* above all descriptor numbers of a worker */
#define WORDS_MAX 8u
#define READ_BYTES (64u << 10)

void layerworker_init(struct layerworker *w)
{
	*w = (struct layerworker){ .output_fd = -1, .report_fd = -1 };
}

void layerworker_done(struct layerworker *w)
{
	if (w->pid > 0) {
		(void)kill(w->pid, SIGKILL); /* our child, not reaped yet */
		while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	cleanup_closep(&w->output_fd);
	cleanup_closep(&w->report_fd);
	free(w->output);
	layerworker_init(w);
}

struct placement {
	int from[8], to[8];
	unsigned count;
};

static void placement_done(struct placement *p)
{
	for (unsigned i = 0; i < p->count; i++)
		cleanup_closep(&p->from[i]);
}

/* Duplicates fd above the target numbers; does nothing for -1. */
static int place(struct placement *p, int fd, int as, struct err *e)
{
	int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY) : -1;

	if (fd < 0)
		return 0;
	if (copy < 0)
		return err_sys(e, errno, "duplicate a descriptor for a worker");
	p->from[p->count] = copy;
	p->to[p->count++] = as;
	return 0;
}

static int spawn(const struct layerworker_options *o, const struct placement *p, pid_t *ret_pid,
		 struct err *e)
{
	static char *const no_environment[] = { NULL };
	char *argv[WORDS_MAX + 3] = { (char *)TOOL_PROGRAM, (char *)o->operation };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r;

	for (unsigned i = 0; o->words && o->words[i]; i++) {
		assert(i < WORDS_MAX);
		argv[2 + i] = (char *)o->words[i];
	}
	sigemptyset(&none);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	for (unsigned i = 0; i < p->count; i++)
		(void)posix_spawn_file_actions_adddup2(&actions, p->from[i], p->to[i]);
	r = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, argv, no_environment);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	if (r != 0)
		return err_sys(e, r, "start a worker");
	return 0;
}

int layerworker_start(const struct layerworker_options *o, struct layerworker *ret, struct err *e)
{
	CLEANUP(placement_done) struct placement p = { .count = 0 };
	CLEANUP(layerworker_done) struct layerworker w;
	int output[2] = { -1, -1 }, report[2] = { -1, -1 };
	int r = 0;

	layerworker_init(&w);
	if (pipe2(output, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0) {
		r = err_sys(e, errno, "create pipes to a worker");
	} else if (place(&p, output[1], STDOUT_FILENO, e) < 0 ||
		   place(&p, report[1], TOOL_REPORT_FD, e) < 0 ||
		   place(&p, o->userns_fd, TOOL_USERNS_FD, e) < 0 ||
		   place(&p, o->dir_fd, LAYERWORKER_DIR_FD, e) < 0 ||
		   place(&p, o->archive_fd, LAYERWORKER_ARCHIVE_FD, e) < 0 ||
		   place(&p, o->lock_fds[0], LAYERWORKER_LOCK_FD, e) < 0 ||
		   place(&p, o->lock_fds[1], LAYERWORKER_LOCK_FD + 1, e) < 0) {
		r = -1;
	}
	w.output_fd = output[0];
	w.report_fd = report[0];
	if (r == 0)
		r = spawn(o, &p, &w.pid, e);
	cleanup_closep(&output[1]);
	cleanup_closep(&report[1]);
	if (r < 0)
		return -1;
	if (fcntl(w.output_fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, errno, "prepare a worker's output");
	*ret = w;
	layerworker_init(&w);
	return 0;
}

int layerworker_read(struct layerworker *w, bool *ret_has_ended, struct err *e)
{
	*ret_has_ended = false;
	for (;;) {
		ssize_t n;

		w->output = mem_grow(w->output, w->output_len + READ_BYTES, 1);
		n = read(w->output_fd, w->output + w->output_len, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return err_sys(e, errno, "read from a worker");
		if (n == 0) {
			*ret_has_ended = true;
			return 0;
		}
		w->output_len += (size_t)n;
		if (w->output_len > LAYERWORKER_OUTPUT_MAX_BYTES)
			return err_set(e, ERR_REMOTE,
				       "the process that unpacks broke its protocol");
	}
}

static int explain_end(int report_fd, int status, struct err *e)
{
	struct err theirs;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (read(report_fd, &theirs, sizeof(theirs)) == (ssize_t)sizeof(theirs)) {
		err_sanitize(&theirs);
		*e = theirs;
		return -1;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		return err_set(e, ERR_REMOTE,
			       "the process that unpacks made a system call that it may not make: "
			       "a hostile archive, or a "
			       "bug to report");
	if (WIFSIGNALED(status))
		return err_set(e, ERR_SYSTEM, "the worker was ended by signal %d",
			       WTERMSIG(status));
	return err_set(e, ERR_SYSTEM, "the worker ended with status %d", WEXITSTATUS(status));
}

int layerworker_wait(struct layerworker *w, struct err *e)
{
	bool has_ended = false;
	int status = 0;

	(void)fcntl(w->output_fd, F_SETFL, 0); /* from here on reads may block */
	while (!has_ended)
		if (layerworker_read(w, &has_ended, e) < 0)
			return -1;
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	w->pid = 0;
	return explain_end(w->report_fd, status, e);
}

int layerworker_run(const struct layerworker_options *o, struct err *e)
{
	CLEANUP(layerworker_done) struct layerworker w;

	layerworker_init(&w);
	if (layerworker_start(o, &w, e) < 0)
		return -1;
	return layerworker_wait(&w, e);
}

int layerworker_enter(struct err *e)
{
	pid_t parent = getppid();

	if (fcntl(TOOL_USERNS_FD, F_GETFD) >= 0) {
		if (setns(TOOL_USERNS_FD, CLONE_NEWUSER) < 0)
			return err_sys(e, errno, "enter the store's user namespace");
		if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
			return err_sys(e, errno, "become root of the store's user namespace");
	}
	/* after the ids: changing them clears this */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(e, errno, "bind the worker to its parent");
	if (getppid() != parent)
		return err_set(e, ERR_SYSTEM, "the worker's parent is gone");
	return 0;
}
