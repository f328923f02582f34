/* subid - the additional ids of an ordinary user; see subid.h. */
#include "host/subid.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBER_MAX_BYTES 16
#define WORDS_MAX_BYTES 256
#define EXIT_NOT_EXECUTED 127

static const char *const program_dirs[] = { "/usr/bin", "/bin", "/run/wrappers/bin",
					    "/usr/local/bin" };

enum { PROGRAM_UID, PROGRAM_GID, PROGRAM_COUNT };
static const char *const program_names[] = { "newuidmap", "newgidmap" };

static bool find_program(int which, char *out, size_t out_size)
{
	for (size_t i = 0; i < COUNT_OF(program_dirs); i++) {
		(void)snprintf(out, out_size, "%s/%s", program_dirs[i], program_names[which]);
		if (access(out, X_OK) == 0)
			return true;
	}
	return false;
}

static bool parse_line(const char *line, size_t len, const char *user, uint32_t uid,
		       struct subid_range *ret)
{
	char number[NUMBER_MAX_BYTES];
	size_t name_len = strcspn(line, ":");
	uint32_t first, count;

	(void)snprintf(number, sizeof(number), "%" PRIu32, uid);
	if (name_len >= len)
		return false;
	if (!(user && strlen(user) == name_len && memcmp(line, user, name_len) == 0) &&
	    !(strlen(number) == name_len && memcmp(line, number, name_len) == 0))
		return false;
	if (sscanf(line + name_len, ":%" SCNu32 ":%" SCNu32, &first, &count) != 2)
		return false;
	if (first == 0 || count < SUBID_COUNT_MIN || first > UINT32_MAX - count)
		return false;
	*ret = (struct subid_range){ first, count };
	return true;
}

bool subid_parse(const char *text, const char *user, uint32_t uid, struct subid_range *ret)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (parse_line(text, len, user, uid, ret))
			return true;
		text += len + (text[len] == '\n');
	}
	return false;
}

static bool read_range(const char *path, const char *user, uint32_t uid, struct subid_range *ret)
{
	cleanup_free char *text = NULL;
	size_t len = 0;

	return file_read_at(AT_FDCWD, path, SUBID_FILE_MAX_BYTES, &text, &len) == 0 &&
	       subid_parse(text, user, uid, ret);
}

bool subid_find(struct subid *ret, const char **ret_why)
{
	const struct passwd *entry = getpwuid(getuid());
	const char *user = entry ? entry->pw_name : NULL;
	char path[64];

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
		*ret_why = "set-id programs such as newuidmap do not work here (no_new_privs)";
		return false;
	}
	if (!find_program(PROGRAM_UID, path, sizeof(path)) ||
	    !find_program(PROGRAM_GID, path, sizeof(path))) {
		*ret_why = "newuidmap and newgidmap are not installed (package uidmap)";
		return false;
	}
	if (!read_range("/etc/subuid", user, getuid(), &ret->uids) ||
	    !read_range("/etc/subgid", user, getuid(), &ret->gids)) {
		*ret_why = "this user has no range in /etc/subuid and /etc/subgid";
		return false;
	}
	return true;
}

/* Starts "newuidmap PID 0 OWN 1 1 FIRST COUNT" with its stderr in words_fd. */
static int start_program(int which, const struct subid_range *range, uint32_t count, uint32_t own,
			 pid_t target, int words_fd, pid_t *ret_pid, struct err *e)
{
	char path[64], pid_text[NUMBER_MAX_BYTES], own_text[NUMBER_MAX_BYTES],
		first_text[NUMBER_MAX_BYTES], count_text[NUMBER_MAX_BYTES];
	char *const argv[] = {
		(char *)program_names[which],
		pid_text,
		"0",
		own_text,
		"1",
		"1",
		first_text,
		count_text,
		NULL,
	};
	char *const no_environment[] = { NULL };
	pid_t pid;

	if (!find_program(which, path, sizeof(path)))
		return err_set(e, ERR_UNSUPPORTED, "%s is gone", program_names[which]);
	(void)snprintf(pid_text, sizeof(pid_text), "%d", (int)target);
	(void)snprintf(own_text, sizeof(own_text), "%" PRIu32, own);
	(void)snprintf(first_text, sizeof(first_text), "%" PRIu32, range->first);
	(void)snprintf(count_text, sizeof(count_text), "%" PRIu32,
		       range->count < count ? range->count : count);
	pid = vfork();
	if (pid == 0) {
		(void)dup2(words_fd, STDERR_FILENO);
		signals_reset();
		(void)execve(path, argv, no_environment);
		_exit(EXIT_NOT_EXECUTED);
	}
	if (pid < 0)
		return err_sys(e, errno, "start %s", program_names[which]);
	*ret_pid = pid;
	return 0;
}

static bool has_succeeded(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int explain(int which, int words_fd, struct err *e)
{
	char words[WORDS_MAX_BYTES] = "";
	ssize_t n = read(words_fd, words, sizeof(words) - 1);

	if (n > 0)
		words[n] = '\0';
	words[strcspn(words, "\n")] = '\0';
	return err_set(e, ERR_UNSUPPORTED, "%s refuses this user's range of ids%s%s",
		       program_names[which], words[0] ? ": " : "", words);
}

int subid_write_maps(const struct subid *s, uint32_t count, pid_t pid, struct err *e)
{
	const struct subid_range *ranges[] = { &s->uids, &s->gids };
	const uint32_t own[] = { getuid(), getgid() };
	pid_t started[PROGRAM_COUNT] = { 0 };
	int words[2];
	bool is_done = true;

	if (pipe2(words, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, errno, "create a pipe to newuidmap");
	for (int i = 0; i < PROGRAM_COUNT && is_done; i++)
		is_done = start_program(i, ranges[i], count, own[i], pid, words[1], &started[i],
					e) == 0;
	for (int i = 0; i < PROGRAM_COUNT; i++)
		if (started[i] && !has_succeeded(started[i]) && is_done) {
			is_done = false;
			(void)explain(i, words[0], e);
		}
	(void)close(words[0]);
	(void)close(words[1]);
	return is_done ? 0 : -1;
}
