/*
 * main - runs the cases; see escape.h.
 *
 *   escape [only=ID,ID...] [slow=1] [KEY=VALUE...]   one line per case: ID verdict detail, with
 * tabs escape list                                      the table: ID wall name, with tabs
 */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CASE_SECONDS_MAX 30
#define DETAIL_MAX_BYTES 160
#define RENAME_EXCHANGE 2
#define RESULT_FD 200 /* above the descriptors that cases open and check */

enum verdict { DENIED, ESCAPED, BROKEN, ABSENT, WORKS, VERDICT_COUNT };

static const char *const verdict_name[VERDICT_COUNT] = {
	[DENIED] = "denied", [ESCAPED] = "ESCAPED", [BROKEN] = "broken",
	[ABSENT] = "absent", [WORKS] = "works",
};

struct result {
	enum verdict verdict;
	char detail[DETAIL_MAX_BYTES];
};

static char **arguments;
static volatile unsigned *passed_count; /* shared with the cases */

static const struct escape_case *const tables[] = {
	cases_fs,       cases_proc,    cases_namespaces, cases_kernel,
	cases_terminal, cases_network, cases_limits,     cases_neighbours,
};

/* ---- for the cases ---- */

static _Noreturn void say(enum verdict verdict, const char *format, va_list args)
{
	struct result r = { .verdict = verdict };

	(void)vsnprintf(r.detail, sizeof(r.detail), format, args);
	for (char *c = r.detail; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = ' ';
	if (write(RESULT_FD, &r, sizeof(r)) < 0)
		_exit(1);
	_exit(0);
}

static _Noreturn void say_plain(enum verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(verdict, format, args);
}

void say_denied_as(const char *word)
{
	say_plain(DENIED, "%s", word);
}

void say_denied(int error)
{
	say_denied_as(errno_name(error));
}

void say_works(void)
{
	say_plain(WORKS, "%s", "");
}

void say_escaped(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(ESCAPED, format, args);
}

void say_broken(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(BROKEN, format, args);
}

void say_result(long result, const char *what)
{
	int error = errno;

	if (result >= 0)
		say_escaped("%s works", what);
	say_denied(error);
}

void tally_add(struct tally *t, const char *word)
{
	for (unsigned i = 0; i < t->count; i++)
		if (strcmp(t->words[i], word) == 0)
			return;
	if (t->count < sizeof(t->words) / sizeof(t->words[0]))
		t->words[t->count++] = word;
}

void tally_error(struct tally *t, int error)
{
	tally_add(t, errno_name(error));
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void tally_say(const struct tally *t)
{
	struct tally sorted = *t;
	char text[DETAIL_MAX_BYTES] = "";

	if (t->count == 0)
		say_broken("nothing was tried");
	qsort(sorted.words, sorted.count, sizeof(sorted.words[0]), compare_words);
	for (unsigned i = 0; i < sorted.count; i++) {
		size_t len = strlen(text);

		(void)snprintf(text + len, sizeof(text) - len, "%s%s", i ? "," : "",
			       sorted.words[i]);
	}
	say_denied_as(text);
}

void tally_result(struct tally *t, long result, const char *what)
{
	if (result >= 0)
		say_escaped("%s works", what);
	tally_error(t, errno);
}

void tally_read(struct tally *t, const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char text[65];
	ssize_t n;

	if (fd < 0) {
		tally_error(t, errno);
		return;
	}
	n = read(fd, text, sizeof(text) - 1);
	if (n > 0) {
		text[n] = '\0';
		say_escaped("%s says: %.40s", path, text);
	}
	if (n < 0)
		tally_error(t, errno);
	else
		tally_add(t, "empty");
	(void)close(fd);
}

void tally_write(struct tally *t, const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0) {
		tally_error(t, errno);
		return;
	}
	/* without protection no kernel setting is written, not even with its current value */
	if (has_canary("outside") && (!strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5)))
		say_escaped("%s opens for writing", path);
	if (write(fd, text, strlen(text)) >= 0)
		say_escaped("%s was written", path);
	tally_error(t, errno);
	(void)close(fd);
}

void tally_write_back(struct tally *t, const char *path)
{
	char text[256] = "";
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		(void)close(fd);
	tally_write(t, path, text);
}

static const char *find_argument(const char *key)
{
	size_t len = strlen(key);

	for (char **argument = arguments; *argument; argument++)
		if (strncmp(*argument, key, len) == 0 && (*argument)[len] == '=')
			return *argument + len + 1;
	return NULL;
}

bool has_canary(const char *key)
{
	return find_argument(key);
}

const char *canary(const char *key)
{
	const char *value = find_argument(key);

	if (!value)
		say_plain(ABSENT, "no %s here", key);
	return value;
}

long canary_number(const char *key)
{
	return strtol(canary(key), NULL, 0);
}

pid_t victim(void)
{
	return has_canary("outside") ? (pid_t)canary_number("pid") : 1;
}

bool has_canary_text(const char *text, size_t len)
{
	return memmem(text, len, "CANARY-", 7);
}

char state_of(pid_t pid)
{
	char path[64], text[256] = "";
	const char *end;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return 'X';
	(void)close(fd);
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : 'X';
}

static void count_passed(int number)
{
	(void)number;
	++*passed_count;
}

unsigned passed_on(void)
{
	return *passed_count;
}

const char *own_path(void)
{
	static char path[256];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		say_broken("cannot find this program: %s", errno_name(errno));
	path[n] = '\0';
	return path;
}

const char *scratch(const char *name)
{
	static char path[256];
	const char *dir = find_argument("scratch");

	if (!dir)
		dir = access("/tmp", W_OK) == 0 ? "/tmp" : ".";
	(void)snprintf(path, sizeof(path), "%s/escape-%s-%d", dir, name, (int)getpid());
	return path;
}

const char *errno_name(int error)
{
#define NAME(e)                                                                                    \
	case e:                                                                                    \
		return #e
	switch (error) {
		NAME(EPERM);
		NAME(ENOENT);
		NAME(ESRCH);
		NAME(EINTR);
		NAME(EIO);
		NAME(ENXIO);
		NAME(E2BIG);
		NAME(ENOEXEC);
		NAME(EBADF);
		NAME(ECHILD);
		NAME(EAGAIN);
		NAME(ENOMEM);
		NAME(EACCES);
		NAME(EFAULT);
		NAME(ENOTBLK);
		NAME(EBUSY);
		NAME(EEXIST);
		NAME(EXDEV);
		NAME(ENODEV);
		NAME(ENOTDIR);
		NAME(EISDIR);
		NAME(EINVAL);
		NAME(ENFILE);
		NAME(EMFILE);
		NAME(ENOTTY);
		NAME(ETXTBSY);
		NAME(EFBIG);
		NAME(ENOSPC);
		NAME(ESPIPE);
		NAME(EROFS);
		NAME(EPIPE);
		NAME(ENOSYS);
		NAME(ENOTEMPTY);
		NAME(ELOOP);
		NAME(ENODATA);
		NAME(EOVERFLOW);
		NAME(EOPNOTSUPP);
		NAME(EAFNOSUPPORT);
		NAME(EPROTONOSUPPORT);
		NAME(ESOCKTNOSUPPORT);
		NAME(EADDRNOTAVAIL);
		NAME(ENETUNREACH);
		NAME(EHOSTUNREACH);
		NAME(ECONNRESET);
		NAME(ECONNREFUSED);
		NAME(ETIMEDOUT);
		NAME(ENOKEY);
		NAME(EDQUOT);
	}
#undef NAME
	return "another error";
}

/* ---- running them ---- */

/* Is every comma-separated word of `detail` one of the `answers` (separated by bars)? */
static bool is_expected(const char *detail, const char *answers)
{
	for (const char *word = detail;;) {
		size_t len = strcspn(word, ",");
		bool is_there = false;

		for (const char *answer = answers; !is_there;) {
			size_t answer_len = strcspn(answer, "|");

			is_there = answer_len == len && strncmp(answer, word, len) == 0;
			if (answer[answer_len] == '\0')
				break;
			answer += answer_len + 1;
		}
		if (!is_there)
			return false;
		if (word[len] == '\0')
			return true;
		word += len + 1;
	}
}

static _Noreturn void be_case(const struct escape_case *c, int result_fd)
{
	(void)signal(SIGUSR2, SIG_DFL);
	(void)setpgid(0, 0);
	if (result_fd != RESULT_FD) {
		if (dup3(result_fd, RESULT_FD, O_CLOEXEC) < 0)
			_exit(1);
		(void)close(result_fd);
	}
	c->attempt();
	say_broken("the case said nothing");
}

static void judge_end(int status, bool is_late, struct result *r)
{
	r->verdict = BROKEN;
	if (is_late)
		(void)snprintf(r->detail, sizeof(r->detail), "no answer in %d s", CASE_SECONDS_MAX);
	else if (!WIFSIGNALED(status))
		(void)snprintf(r->detail, sizeof(r->detail), "ended with %d and no word",
			       WEXITSTATUS(status));
	else {
		r->verdict = DENIED;
		(void)snprintf(r->detail, sizeof(r->detail), "%s",
			       WTERMSIG(status) == SIGSYS    ? "SIGSYS"
			       : WTERMSIG(status) == SIGKILL ? "SIGKILL"
							     : "another signal");
	}
}

static struct result run_case(const struct escape_case *c)
{
	struct result r = { .verdict = BROKEN };
	int ends[2], status = 0, ready;
	struct pollfd polled;
	bool is_late;
	pid_t pid;

	if (pipe(ends) < 0 || (pid = fork()) < 0) {
		(void)snprintf(r.detail, sizeof(r.detail), "no process: %s", errno_name(errno));
		return r;
	}
	if (pid == 0) {
		(void)close(ends[0]);
		be_case(c, ends[1]);
	}
	(void)close(ends[1]);
	polled = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	while ((ready = poll(&polled, 1, CASE_SECONDS_MAX * 1000)) < 0 && errno == EINTR)
		continue;
	is_late = ready == 0;
	if (is_late || read(ends[0], &r, sizeof(r)) != (ssize_t)sizeof(r)) {
		(void)kill(-pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		judge_end(status, is_late, &r);
	} else {
		(void)waitpid(pid, &status, 0);
	}
	(void)kill(-pid, SIGKILL); /* processes that the case left running */
	(void)close(ends[0]);
	if (r.verdict == DENIED && !is_expected(r.detail, c->answers))
		r.verdict = BROKEN;
	return r;
}

static bool is_wanted(const struct escape_case *c)
{
	const char *only = find_argument("only");
	size_t len = strlen(c->id);

	if (!only)
		return !(c->flags & CASE_ALONE) && !(c->flags & CASE_SLOW && !has_canary("slow"));
	for (;;) {
		if (strncmp(only, c->id, len) == 0 && (only[len] == ',' || only[len] == '\0'))
			return true;
		only = strchr(only, ',');
		if (!only)
			return false;
		only++;
	}
}

int main(int argc, char **argv)
{
	arguments = argv + 1;
	if (argc == 2 && strcmp(argv[1], "set-id") == 0) { /* the case about set-id programs */
		printf("%d %d\n", (int)getuid(), (int)geteuid());
		return 0;
	}
	if (argc == 4 && strcmp(argv[1], "swap") == 0) /* the race with copies */
		for (;;)
			(void)syscall(SYS_renameat2, AT_FDCWD, argv[2], AT_FDCWD, argv[3],
				      RENAME_EXCHANGE);
	(void)signal(SIGPIPE, SIG_IGN);
	/* pid 1 drops its privileges after it has started us, so wait until it sleeps */
	for (int i = 0; i < 1000 && state_of(1) != 'S'; i++)
		(void)usleep(1000);
	passed_count = mmap(NULL, sizeof(*passed_count), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (passed_count == MAP_FAILED)
		return 1;
	(void)sigaction(SIGUSR2,
			&(struct sigaction){ .sa_handler = count_passed, .sa_flags = SA_RESTART },
			NULL);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct escape_case *c = tables[i]; c->id; c++) {
			struct result r;

			if (argc == 2 && strcmp(argv[1], "list") == 0) {
				printf("%s\t%s\t%s\n", c->id, c->wall, c->name);
				continue;
			}
			if (!is_wanted(c))
				continue;
			r = run_case(c);
			printf("%s\t%s\t%s\n", c->id, verdict_name[r.verdict], r.detail);
			(void)fflush(stdout);
		}
	return 0;
}
