/* filecopy - copies trees between this machine and a named sandbox; see filecopy.h. */
#include "named/filecopy.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "named/files.h"
#include "engine/imagehelper.h"
#include "named/lifecycle.h"
#include "tree/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORDS_MAX 6

/* One end of the copy: its directory and the arguments of its helper process. */
struct end {
	const char *operation;
	int dir_fd;
	int in_fd, out_fd;
	char *words[WORDS_MAX];
	unsigned count;
	const struct helper *program;
};

static void end_done(struct end *x)
{
	for (unsigned i = 0; i < x->count; i++)
		free(x->words[i]);
	x->count = 0;
}

static void add(struct end *x, char *word)
{
	x->words[x->count++] = word;
	x->words[x->count] = NULL;
}

/* The target as "dir/name". A name of "." means the content of the directory. */
struct place {
	char *dir, *name;
};

static void place_done(struct place *p)
{
	free(p->dir);
	free(p->name);
}

/* "a/b/." -> "."; "a/b/" and "a/b" -> "b" */
static char *base_name(const char *path)
{
	size_t len = strlen(path);
	size_t start;

	while (len > 1 && path[len - 1] == '/')
		len--;
	start = len;
	while (start > 0 && path[start - 1] != '/')
		start--;
	if (len == start || (len == 1 && path[0] == '/'))
		return mem_dup(".");
	return mem_dup_bytes(path + start, len - start);
}

static char *parent_of(const char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	while (len > 0 && path[len - 1] != '/')
		len--;
	if (len == 0)
		return mem_dup(path[0] == '/' ? "/" : ".");
	while (len > 1 && path[len - 1] == '/')
		len--;
	return mem_dup_bytes(path, len);
}

static void choose_place(const char *source, const char *target, bool is_dir, struct place *ret)
{
	cleanup_free char *own = base_name(source);

	if (is_dir) {
		ret->dir = mem_dup(target);
		ret->name = take_ptr(own);
		return;
	}
	ret->dir = parent_of(target);
	ret->name = base_name(target);
}

/* ---- the ends ---- */

static void pack_end(struct end *x, const char *path, const char *as, bool is_inside,
		     unsigned flags)
{
	size_t len = strlen(path);

	x->operation = "files-pack";
	/* base_name() has used the "." at the end already */
	if (len > 2 && strcmp(path + len - 2, "/.") == 0)
		len -= 2;
	add(x, mem_format("name=%.*s", (int)len, path));
	add(x, mem_format("as=%s", as));
	if (is_inside)
		add(x, mem_dup("root=yes"));
	if (flags & FILECOPY_FOLLOW)
		add(x, mem_dup("follow=yes"));
}

static void unpack_end(struct end *x, const char *dir, bool is_inside, unsigned flags)
{
	x->operation = "files-unpack";
	add(x, mem_format("name=%s", dir));
	if (is_inside)
		add(x, mem_dup("root=yes"));
	if (flags & FILECOPY_OWNERS)
		add(x, mem_dup("owners=keep"));
}

static int start_end(const struct end *x, struct imagehelper_job *ret, struct err *e)
{
	const struct imagehelper_transfer t = {
		.operation = x->operation,
		.words = (const char *const *)x->words,
		.dir_fd = x->dir_fd,
		.stdin_fd = x->in_fd,
		.stdout_fd = x->out_fd,
		.answer_fd = -1,
		.program = x->program,
	};

	return imagehelper_start(&t, ret, e);
}

/* Runs in a child with the identity of the sandbox's user. */
static int run_end(void *context, struct err *e)
{
	struct imagehelper_job job = { .report_fd = -1 };
	int r = start_end(context, &job, e);

	if (r == 0)
		r = imagehelper_wait(&job, e);
	imagehelper_job_done(&job);
	return r;
}

static int run_inside(const struct files *f, struct end *x, struct err *e)
{
	const struct owner_identity who = {
		.userns_fd = f->userns_fd, .mntns_fd = -1, .uid = f->uid, .gid = f->gid
	};

	x->dir_fd = f->root_fd;
	return owner_run_as(&who, run_end, x, NULL, 0, e);
}

/*
 * Runs the host's end beside the inside end. The inside's error comes first, except when packing on
 * the host failed: then the inside only met a truncated archive.
 */
static int run_ends(const struct files *f, struct end *inside, struct end *outside, struct err *e)
{
	struct imagehelper_job job = { .report_fd = -1 };
	struct err other = { 0 };
	int ends[2], r, r_other;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	if (strcmp(outside->operation, "files-pack") == 0) {
		outside->out_fd = ends[1];
		inside->in_fd = ends[0];
	} else {
		outside->in_fd = ends[0];
		inside->out_fd = ends[1];
	}
	r = start_end(outside, &job, e);
	/* the host's helper has the only copy of that end now */
	cleanup_closep(strcmp(outside->operation, "files-pack") == 0 ? &ends[1] : &ends[0]);
	if (r == 0)
		r = run_inside(f, inside, e);
	cleanup_closep(&ends[0]);
	cleanup_closep(&ends[1]);
	r_other = job.pid > 0 ? imagehelper_wait(&job, &other) : 0;
	imagehelper_job_done(&job);
	/* a failed pack outside is the cause of a truncated archive inside */
	if (r_other < 0 && (r == 0 || strcmp(outside->operation, "files-pack") == 0)) {
		*e = other;
		return -1;
	}
	return r;
}

static int run_both(const struct files *f, struct end *inside, struct end *outside, struct err *e)
{
	CLEANUP(helper_done) struct helper program = { .fd = -1 };
	int r;

	if (helper_open(TOOL_PROGRAM, &program, e) < 0)
		return -1;
	/* cppcheck-suppress autoVariables ; until run_ends() returns */
	inside->program = outside->program = &program;
	r = run_ends(f, inside, outside, e);
	inside->program = outside->program = NULL;
	return r;
}

/* ---- copying ---- */

static bool is_dir_inside(struct files *f, const char *path)
{
	struct files_list list = { 0 };
	struct err ignored;
	bool is_dir = files_list(f, path, &list, &ignored) == 0;

	files_list_done(&list);
	return is_dir;
}

static int noted(const struct files *f, int r, const char *act, const char *path,
		 const struct err *e)
{
	cleanup_free char *what = mem_format("%s %s", act, path);

	lifecycle_audit(f->ak, AUDITLINE_FILE, f->sandbox, what, r < 0 ? e : NULL);
	return r;
}

int filecopy_in(struct files *f, const char *host_path, const char *path, unsigned flags,
		struct err *e)
{
	CLEANUP(end_done) struct end inside = { .in_fd = -1, .out_fd = -1 };
	CLEANUP(end_done) struct end outside = { .dir_fd = -1, .in_fd = -1, .out_fd = -1 };
	CLEANUP(place_done) struct place place = { 0 };
	cleanup_fd int cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (cwd_fd < 0)
		return err_sys(e, errno, "open the working directory");
	if (lstat(host_path, &st) < 0)
		return errno == ENOENT ? err_set(e, ERR_NOT_FOUND,
						 "no such file or directory: '%s'", host_path)
				       : err_sys(e, errno, "'%s'", host_path);
	choose_place(host_path, path, is_dir_inside(f, path), &place);
	outside.dir_fd = cwd_fd;
	pack_end(&outside, host_path, place.name, false, flags);
	unpack_end(&inside, place.dir, true, flags);
	return noted(f, run_both(f, &inside, &outside, e), "copy to", path, e);
}

int filecopy_out(struct files *f, const char *path, const char *host_path, unsigned flags,
		 struct err *e)
{
	CLEANUP(end_done) struct end inside = { .in_fd = -1, .out_fd = -1 };
	CLEANUP(end_done) struct end outside = { .dir_fd = -1, .in_fd = -1, .out_fd = -1 };
	CLEANUP(place_done) struct place place = { 0 };
	CLEANUP(files_entry_done) struct files_entry entry = { 0 };
	cleanup_fd int dir_fd = -1;
	struct stat st;

	/* an earlier copy out of the sandbox may have created this link */
	if (lstat(host_path, &st) == 0 && S_ISLNK(st.st_mode))
		return err_set(
			e, ERR_INVALID,
			"'%s' is a symbolic link (remove it, or name the place that it leads "
			"to)",
			host_path);
	if (files_stat(f, path, &entry, e) < 0)
		return -1;
	choose_place(path, host_path, stat(host_path, &st) == 0 && S_ISDIR(st.st_mode), &place);
	dir_fd = open(place.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_sys(e, errno, "open '%s'", place.dir);
	outside.dir_fd = dir_fd;
	pack_end(&inside, path, place.name, true, flags);
	unpack_end(&outside, ".", false, flags);
	return run_both(f, &inside, &outside, e);
}

static int run_alone(struct files *f, struct end *x, struct err *e)
{
	CLEANUP(helper_done) struct helper program = { .fd = -1 };
	int r;

	if (helper_open(TOOL_PROGRAM, &program, e) < 0)
		return -1;
	/* cppcheck-suppress autoVariables ; until run_inside() returns */
	x->program = &program;
	r = run_inside(f, x, e);
	x->program = NULL;
	return r;
}

int filecopy_in_tar(struct files *f, int in_fd, const char *path, unsigned flags, struct err *e)
{
	CLEANUP(end_done) struct end inside = { .in_fd = in_fd, .out_fd = -1 };

	unpack_end(&inside, path, true, flags);
	return noted(f, run_alone(f, &inside, e), "unpack to", path, e);
}

int filecopy_out_tar(struct files *f, const char *path, int out_fd, unsigned flags, struct err *e)
{
	CLEANUP(end_done) struct end inside = { .in_fd = -1, .out_fd = out_fd };
	cleanup_free char *name = base_name(path);

	pack_end(&inside, path, name, true, flags);
	return run_alone(f, &inside, e);
}
