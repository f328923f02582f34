/* owner - runs functions with access to files that a sandbox wrote; see owner.h. */
#include "tree/owner.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/sweep.h"
#include "host/idmap.h"
#include "host/privs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool needs_namespace(void)
{
	return geteuid() != 0;
}

int owner_become(const struct owner_identity *who, struct err *e)
{
	if (setns(who->userns_fd, CLONE_NEWUSER) < 0)
		return err_sys(e, errno, "enter the namespace of the sandbox's files");
	if (who->mntns_fd >= 0 && setns(who->mntns_fd, CLONE_NEWNS) < 0)
		return err_sys(e, errno, "enter the namespace of the sandbox's mounts");
	/* an ordinary user's namespace with one id may not drop groups */
	if (syscall(SYS_setgroups, 0, NULL) < 0 && errno != EPERM)
		return err_sys(e, errno, "give up groups");
	/* by system call number: there is a single thread */
	if (syscall(SYS_setresgid, who->gid, who->gid, who->gid) < 0 ||
	    syscall(SYS_setresuid, who->uid, who->uid, who->uid) < 0)
		return err_sys(e, errno, "become the owner of the sandbox's files");
	/* setns() gave us all capabilities, and setresuid() between non-root ids keeps them */
	return who->uid == 0 ? 0 : privs_clear(e);
}

/* The child sends its error first (code 0: none), then the shared memory. */
static _Noreturn void child_main(const struct owner_identity *who, int out_fd, owner_fn *fn,
				 void *context, const void *shared, size_t size)
{
	struct err e = { 0 };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if ((!who || owner_become(who, &e) == 0) && fn(context, &e) == 0)
		e.code = ERR_NONE;
	(void)!file_write_all(out_fd, &e, sizeof(e));
	(void)!file_write_all(out_fd, shared, size);
	_exit(0);
}

/* `who` NULL: with the identity that we have. */
static int start(const struct owner_identity *who, owner_fn *fn, void *context, const void *shared,
		 size_t size, struct owner_job *ret, struct err *e)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		child_main(who, ends[1], fn, context, shared, size);
	}
	(void)close(ends[1]);
	if (pid < 0) {
		(void)err_sys(e, errno, "start a process");
		(void)close(ends[0]);
		return -1;
	}
	*ret = (struct owner_job){ pid, ends[0] };
	return 0;
}

static void end(struct owner_job *job)
{
	while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	cleanup_closep(&job->report_fd);
	job->pid = 0;
}

static int finish(struct owner_job *job, void *shared, size_t size, struct err *e)
{
	struct err told = { 0 };
	bool is_whole = file_read_exactly(job->report_fd, &told, sizeof(told)) &&
			file_read_exactly(job->report_fd, shared, size);

	end(job);
	if (!is_whole)
		return err_set(e, ERR_SYSTEM, "a process that worked on the sandbox's files died");
	if (told.code == ERR_NONE)
		return 0;
	err_sanitize(&told);
	*e = told;
	return -1;
}

int owner_run_as(const struct owner_identity *who, owner_fn *fn, void *context, void *shared,
		 size_t size, struct err *e)
{
	struct owner_job job;

	if (start(who, fn, context, shared, size, &job, e) < 0)
		return -1;
	return finish(&job, shared, size, e);
}

int owner_start(owner_fn *fn, void *context, struct owner_job *ret, struct err *e)
{
	struct owner_identity root = { .userns_fd = -1, .mntns_fd = -1 };
	int r;

	if (!needs_namespace())
		return start(NULL, fn, context, NULL, 0, ret, e);
	if (idmap_open_store_ns(&root.userns_fd, e) < 0)
		return -1;
	r = start(&root, fn, context, NULL, 0, ret, e);
	cleanup_closep(&root.userns_fd);
	return r;
}

int owner_finish(struct owner_job *job, struct err *e)
{
	return finish(job, NULL, 0, e);
}

void owner_abort(struct owner_job *job)
{
	if (job->pid <= 0)
		return;
	(void)kill(job->pid, SIGKILL);
	end(job);
}

bool owner_is_one(void)
{
	return geteuid() != 0 && !needs_namespace();
}

int owner_run(owner_fn *fn, void *context, void *shared, size_t size, struct err *e)
{
	if (!needs_namespace())
		return fn(context, e);
	return owner_run_apart(fn, context, shared, size, e);
}

int owner_run_apart(owner_fn *fn, void *context, void *shared, size_t size, struct err *e)
{
	struct owner_identity root = { .userns_fd = -1, .mntns_fd = -1 };
	int r;

	if (idmap_open_store_ns(&root.userns_fd, e) < 0)
		return -1;
	r = owner_run_as(&root, fn, context, shared, size, e);
	cleanup_closep(&root.userns_fd);
	return r;
}

struct sweeping {
	int dir_fd;
	const char *name;
};

static int sweep(void *context, struct err *e)
{
	const struct sweeping *s = context;

	return sweep_tree(s->dir_fd, s->name, e);
}

/* Most trees belong to the caller alone, so the namespace, which is slower, is tried second. */
int owner_sweep(int dir_fd, const char *name, struct err *e)
{
	struct sweeping s = { dir_fd, name };

	if (sweep(&s, e) == 0)
		return 0;
	if ((e->sys != EACCES && e->sys != EPERM) || !needs_namespace())
		return -1;
	return owner_run(sweep, &s, NULL, 0, e);
}
