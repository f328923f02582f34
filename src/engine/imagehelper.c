/* imagehelper - runs agentkernel-image; see imagehelper.h. */
#include "engine/imagehelper.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "engine/helper.h"
#include "engine/images.h"
#include "state/ak.h"
#include "state/statedir.h"
#include "image/tool.h"
#include "host/idmap.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/* program, operation, store, owners, the words, NULL */
#define ARGV_MAX (IMAGEHELPER_WORDS_MAX + 5)

/* Returns the helper's own error, or describes its exit status. */
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
	if (WIFSIGNALED(status))
		return err_set(e, ERR_SYSTEM, "%s was ended by signal %d", TOOL_PROGRAM,
			       WTERMSIG(status));
	return err_set(e, ERR_SYSTEM, "%s ended with status %d", TOOL_PROGRAM, WEXITSTATUS(status));
}

static int start(const struct imagehelper_request *q, char **argv, int report_fd, int userns_fd,
		 pid_t *ret_pid, struct err *e)
{
	const struct helper_descriptor fds[] = {
		{ q->in_fd, STDIN_FILENO },
		{ q->out_fd ? q->out_fd : STDOUT_FILENO, STDOUT_FILENO },
		{ STDERR_FILENO, STDERR_FILENO }, { report_fd, TOOL_REPORT_FD },
		{ userns_fd, TOOL_USERNS_FD },
	};
	const struct helper_options options = { .environ_list =
							q->ak ? q->ak->caller.environ_list : NULL,
						.is_in_session = true };
	CLEANUP(helper_done) struct helper program = { .fd = -1 };

	if (helper_open(TOOL_PROGRAM, &program, e) < 0)
		return -1;
	return helper_start(&program, argv, fds, COUNT_OF(fds), &options, ret_pid, e);
}

int imagehelper_run(const struct imagehelper_request *q, struct err *e)
{
	char owners_text[IDMAP_OWNERS_MAX_BYTES];
	cleanup_free char *path = NULL, *store = NULL, *owners = NULL;
	cleanup_fd int userns_fd = -1, read_fd = -1, write_fd = -1;
	char *argv[ARGV_MAX];
	unsigned count = 0;
	int report[2], status = 0;
	pid_t pid;

	if (statedir_make_path(q->ak, IMAGES_DIR, &path, e) < 0 ||
	    idmap_format_owners(owners_text, e) < 0 || idmap_open_store_ns(&userns_fd, e) < 0)
		return -1;
	if (pipe2(report, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe to %s", TOOL_PROGRAM);
	read_fd = report[0];
	write_fd = report[1];
	store = mem_format("store=%s", path);
	owners = mem_format("owners=%s", owners_text);
	argv[count++] = (char *)TOOL_PROGRAM;
	argv[count++] = (char *)q->operation;
	argv[count++] = store;
	argv[count++] = owners;
	for (const char *const *word = q->words; word && *word; word++) {
		assert(count < ARGV_MAX - 1);
		argv[count++] = (char *)*word;
	}
	argv[count] = NULL;
	if (start(q, argv, write_fd, userns_fd, &pid, e) < 0)
		return -1;
	cleanup_closep(&write_fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return explain_end(read_fd, status, e);
}

/* ---- transfers ---- */

int imagehelper_start(const struct imagehelper_transfer *t, struct imagehelper_job *ret,
		      struct err *e)
{
	const struct helper_options options = { .is_in_session = true };
	cleanup_fd int read_fd = -1, write_fd = -1;
	char *argv[ARGV_MAX];
	unsigned count = 0;
	int report[2];
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe to %s", TOOL_PROGRAM);
	read_fd = report[0];
	write_fd = report[1];
	argv[count++] = (char *)TOOL_PROGRAM;
	argv[count++] = (char *)t->operation;
	for (const char *const *word = t->words; word && *word; word++) {
		assert(count < ARGV_MAX - 1);
		argv[count++] = (char *)*word;
	}
	argv[count] = NULL;
	{
		const struct helper_descriptor fds[] = {
			{ t->stdin_fd, STDIN_FILENO }, { t->stdout_fd, STDOUT_FILENO },
			{ -1, STDERR_FILENO },         { write_fd, TOOL_REPORT_FD },
			{ t->dir_fd, TOOL_DIR_FD },    { t->answer_fd, TOOL_ANSWER_FD },
		};

		if (helper_start(t->program, argv, fds, COUNT_OF(fds), &options, &pid, e) < 0)
			return -1;
	}
	*ret = (struct imagehelper_job){ pid, take_fd(&read_fd) };
	return 0;
}

int imagehelper_wait(struct imagehelper_job *j, struct err *e)
{
	int status = 0, r;

	while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	j->pid = 0;
	r = explain_end(j->report_fd, status, e);
	cleanup_closep(&j->report_fd);
	return r;
}

void imagehelper_job_done(struct imagehelper_job *j)
{
	if (j->pid > 0) {
		(void)kill(j->pid, SIGKILL); /* our child, not yet reaped */
		while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	j->pid = 0;
	cleanup_closep(&j->report_fd);
}
