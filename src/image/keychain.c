/* keychain - runs a Docker credential helper; see keychain.h. */
#include "image/keychain.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PROGRAM_PREFIX "docker-credential-"
#define SAYS_NOT_FOUND "credentials not found in native keychain"
#define WORDS_SHOWN_BYTES 200
#define READ_BYTES 4096u

/* One run of a helper. */
struct run {
	pid_t pid;  /* 0: not started, or reaped */
	int pid_fd; /* readable once it has exited */
	int out_fd; /* its stdout */
	uint64_t deadline_ms;
};

static void run_done(struct run *r)
{
	if (r->pid > 0) {
		(void)kill(-r->pid, SIGKILL);
		(void)waitpid(r->pid, NULL, 0);
	}
	r->pid = 0;
	cleanup_closep(&r->pid_fd);
	cleanup_closep(&r->out_fd);
}

/* ---- finding it ---- */

static bool is_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			return false;
	return name[0];
}

static const char *find_path_variable(char *const *environ_list)
{
	for (; environ_list && *environ_list; environ_list++)
		if (strncmp(*environ_list, "PATH=", 5) == 0)
			return *environ_list + 5;
	return "";
}

/* Searches the caller's PATH, not ours; relative entries are skipped. */
static char *find_program(const struct keychain_request *q)
{
	const char *rest = find_path_variable(q->environ_list);

	while (*rest) {
		size_t len = strcspn(rest, ":");
		cleanup_free char *path =
			mem_format("%.*s/" PROGRAM_PREFIX "%s", (int)len, rest, q->name);

		if (path[0] == '/' && access(path, X_OK) == 0)
			return take_ptr(path);
		rest += len + (rest[len] == ':');
	}
	return NULL;
}

/* ---- starting it ---- */

/* A file for stdin: unlike a pipe it cannot block, nor raise SIGPIPE if nobody reads. */
static int open_question(const char *server, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = memfd_create("server", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return err_sys(e, errno, "make a question for a credential helper");
	r = file_write_all(fd, server, strlen(server));
	if (r < 0)
		return err_sys(e, -r, "write a question for a credential helper");
	(void)lseek(fd, 0, SEEK_SET);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* In its own process group, with default signals. stderr stays ours: helpers prompt there. */
static int spawn(const char *path, char *const *environ_list, int in_fd, int out_fd, pid_t *ret_pid)
{
	static char verb[] = "get";
	char *const argv[] = { (char *)path, verb, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, in_fd, STDIN_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
							    POSIX_SPAWN_SETSIGMASK);
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	r = posix_spawn(ret_pid, path, &actions, &attributes, argv, environ_list);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int start(const char *path, const struct keychain_request *q, struct run *r, struct err *e)
{
	cleanup_fd int question_fd = -1;
	cleanup_fd int answer_fd = -1;
	int ends[2];
	int failed;

	if (open_question(q->server, &question_fd, e) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe for a credential helper");
	r->out_fd = ends[0];
	answer_fd = ends[1];
	failed = spawn(path, q->environ_list, question_fd, answer_fd, &r->pid);
	if (failed < 0) {
		r->pid = 0;
		return err_sys(e, -failed, "start the credential helper '%s'", path);
	}
	r->pid_fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	if (r->pid_fd < 0)
		return err_sys(e, errno, "watch the credential helper '%s'", path);
	return 0;
}

/* ---- reading its answer ---- */

static int wait_readable(const struct run *r, int fd, const struct keychain_request *q,
			 struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t now;
	int n;

	do {
		now = clock_now_ms();
		n = now < r->deadline_ms ? poll(&p, 1, (int)(r->deadline_ms - now)) : 0;
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(e, errno, "wait for the credential helper '%s'", q->name);
	if (n == 0)
		return err_set(e, ERR_TIMEOUT,
			       "the credential helper '%s' gives no answer within %llu ms and was "
			       "ended",
			       q->name, (unsigned long long)q->max_ms);
	return 0;
}

static int read_answer(const struct run *r, const struct keychain_request *q, struct buf *answer,
		       struct err *e)
{
	char piece[READ_BYTES];
	ssize_t n;

	for (;;) {
		if (wait_readable(r, r->out_fd, q, e) < 0)
			return -1;
		n = read(r->out_fd, piece, sizeof(piece));
		if (n == 0)
			break;
		if (n > 0)
			buf_add(answer, piece, (size_t)n);
		else if (errno != EINTR)
			return err_sys(e, errno, "read from the credential helper '%s'", q->name);
		explicit_bzero(piece, sizeof(piece));
		if (answer->is_cut)
			return err_set(e, ERR_LIMIT,
				       "the credential helper '%s' says more than %zu bytes",
				       q->name, answer->max);
	}
	return 0;
}

static int reap(struct run *r, const struct keychain_request *q, int *ret_status, struct err *e)
{
	if (wait_readable(r, r->pid_fd, q, e) < 0)
		return -1;
	while (waitpid(r->pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, errno, "wait for the credential helper '%s'", q->name);
	r->pid = 0;
	return 0;
}

static int fail_with_words(const struct keychain_request *q, const char *words, struct err *e)
{
	int len = (int)strcspn(words, "\r\n");

	if (len > WORDS_SHOWN_BYTES)
		len = WORDS_SHOWN_BYTES;
	(void)err_set(e, ERR_DENIED, "the credential helper '%s' fails: %.*s", q->name, len, words);
	err_sanitize(e);
	return -1;
}

int keychain_get(const struct keychain_request *q, struct buf *answer, bool *ret_is_known,
		 struct err *e)
{
	CLEANUP(run_done) struct run r = { .pid_fd = -1, .out_fd = -1 };
	cleanup_free char *path = NULL;
	int status = 0;

	if (!is_name(q->name))
		return err_set(e, ERR_INVALID, "a credential helper has an impossible name");
	path = find_program(q);
	if (!path)
		return err_set(e, ERR_NOT_FOUND,
			       "the credential helper '" PROGRAM_PREFIX "%s' is not in PATH",
			       q->name);
	r.deadline_ms = clock_now_ms() + q->max_ms;
	if (start(path, q, &r, e) < 0 || read_answer(&r, q, answer, e) < 0 ||
	    reap(&r, q, &status, e) < 0)
		return -1;
	*ret_is_known = status == 0;
	if (status != 0 && !strstr(buf_text(answer), SAYS_NOT_FOUND))
		return fail_with_words(q, buf_text(answer), e);
	return 0;
}
