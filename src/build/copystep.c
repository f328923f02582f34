/*
 * copystep - COPY, ADD and WORKDIR; see copystep.h.
 *
 * Theory of operation. The stage's root is mounted with the step's upper directory on top, so that
 * links in the destination lead where they would inside, directories keep their attributes and only
 * changes are written. Sources are opened below their root without following links; targets are
 * made anew in directories that were opened within the stage's root.
 *
 * Hostile input: the sources, and the stage's root, which was written by commands of the image.
 */
#include "build/copystep.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/shown.h"
#include "base/sweep.h"
#include "engine/imagehelper.h"
#include "host/mount.h"
#include "policy/account.h"
#include "tree/treefile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUOTED_MAX_BYTES 200

struct copying {
	const struct copystep *step;
	int source_fd, root_fd;
	struct treefile_copier copier;
	bool has_owner, has_mode;
	uid_t uid;
	gid_t gid;
	mode_t mode;
	/* the directories of the last file, which the next one is probably in as well */
	char *source_dir, *target_dir;
	int source_dir_fd, target_dir_fd;
};

static int complain(const char *what, const char *path, int sys, struct err *e)
{
	(void)err_sys(e, sys, "%s '%.*s'", what, QUOTED_MAX_BYTES, path);
	shown_replace(e->msg);
	return -1;
}

/* ---- owners ---- */

static char *read_account_file(int root_fd, const char *path)
{
	cleanup_fd int fd = mount_open_in_root(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char *text = NULL;
	struct stat st;
	size_t len = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    file_read_fd(fd, ACCOUNT_FILE_MAX_BYTES, &text, &len) < 0)
		return mem_dup("");
	return text;
}

void copystep_read_accounts(int root_fd, char **ret_passwd, char **ret_group)
{
	*ret_passwd = read_account_file(root_fd, "etc/passwd");
	*ret_group = read_account_file(root_fd, "etc/group");
}

/* "user" alone has the group of the same account; a number alone, that number. */
static int find_owner(struct copying *c, const char *text, struct err *e)
{
	cleanup_free char *passwd = NULL, *group = NULL, *both = NULL;
	bool is_number = text[0] && !text[strspn(text, "0123456789")];
	struct account a;

	copystep_read_accounts(c->root_fd, &passwd, &group);
	if (is_number)
		both = mem_format("%s:%s", text, text);
	if (account_find(passwd, group, both ? both : text, &a, e) < 0)
		return err_wrap(e, "--chown=%s", text);
	c->has_owner = true;
	c->uid = a.uid;
	c->gid = a.gid;
	return 0;
}

static int read_attributes(struct copying *c, struct err *e)
{
	const struct copystep *s = c->step;
	char *end;

	if (s->owner && find_owner(c, s->owner, e) < 0)
		return -1;
	if (!s->owner && (s->context_fd >= 0 || s->text_count))
		c->has_owner = true; /* 0:0: ids of the machine that builds mean nothing inside */
	if (s->has_one_owner) {      /* the names are still checked */
		c->has_owner = true;
		c->uid = 0;
		c->gid = 0;
	}
	if (!s->mode)
		return 0;
	c->mode = (mode_t)strtoul(s->mode, &end, 8);
	if (!s->mode[0] || *end || c->mode > 07777)
		return err_set(e, ERR_INVALID, "--chmod=%.40s is no octal mode, as 755 is",
			       s->mode);
	c->has_mode = true;
	return 0;
}

/* An ordinary caller without ranges in /etc/subuid has one id alone: then all is its own. */
static int give(int fd, uid_t uid, gid_t gid, struct err *e)
{
	if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 && errno != EINVAL)
		return err_sys(e, errno, "set the owner");
	return 0;
}

/* ---- directories of the target ---- */

/* Makes what is missing of a path within the root, 0755, for the owner that --chown names. */
static int make_dirs(struct copying *c, const char *path, struct err *e)
{
	cleanup_free char *part = mem_dup(path);

	for (char *at = part + 1;; at++) {
		char *slash = strchr(at, '/');
		cleanup_fd int fd = -1, parent_fd = -1;
		char *last;

		if (slash)
			*slash = '\0';
		if (*at && strcmp(at, ".") != 0) {
			fd = mount_open_in_root(c->root_fd, part, O_PATH | O_DIRECTORY);
			if (fd < 0 && fd != -ENOENT)
				return fd == -ENOTDIR
					       ? err_set(e, ERR_INVALID,
							 "'%.*s' in the image is no directory",
							 QUOTED_MAX_BYTES, part)
					       : complain("open the image's", part, -fd, e);
		}
		if (fd == -ENOENT) {
			last = strrchr(part, '/');
			*last = '\0';
			parent_fd = mount_open_in_root(c->root_fd, part[0] ? part : "/",
						       O_PATH | O_DIRECTORY);
			*last = '/';
			if (parent_fd < 0 || mkdirat(parent_fd, last + 1, 0755) < 0)
				return complain("make the directory", part,
						parent_fd < 0 ? -parent_fd : errno, e);
			fd = openat(parent_fd, last + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
			if (fd < 0)
				return complain("make the directory", part, errno, e);
			if (c->has_owner && (c->uid || c->gid) && give(fd, c->uid, c->gid, e) < 0)
				return err_wrap(e, "'%.*s'", QUOTED_MAX_BYTES, part);
		}
		if (!slash)
			return 0;
		*slash = '/';
		at = slash;
	}
}

static int open_target_dir(struct copying *c, const char *path, struct err *e)
{
	int fd;

	if (c->target_dir && strcmp(c->target_dir, path) == 0)
		return 0;
	fd = mount_open_in_root(c->root_fd, path, O_RDONLY | O_DIRECTORY);
	if (fd == -ENOENT) {
		if (make_dirs(c, path, e) < 0)
			return -1;
		fd = mount_open_in_root(c->root_fd, path, O_RDONLY | O_DIRECTORY);
	}
	if (fd < 0)
		return complain("open the image's", path, -fd, e);
	cleanup_closep(&c->target_dir_fd);
	c->target_dir_fd = fd;
	free(c->target_dir);
	c->target_dir = mem_dup(path);
	return 0;
}

static int open_source_dir(struct copying *c, const char *path, struct err *e)
{
	int fd;

	if (c->source_dir && strcmp(c->source_dir, path) == 0)
		return 0;
	fd = mount_open_plain(c->source_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return complain("open", path, -fd, e);
	cleanup_closep(&c->source_dir_fd);
	c->source_dir_fd = fd;
	free(c->source_dir);
	c->source_dir = mem_dup(path);
	return 0;
}

/* ---- one entry ---- */

static int set_attributes(struct copying *c, int from_fd, const struct stat *st, int fd,
			  struct err *e)
{
	struct stat wanted = *st;
	int r;

	if (c->has_owner) {
		wanted.st_uid = c->uid;
		wanted.st_gid = c->gid;
	}
	if (c->has_mode)
		wanted.st_mode = (wanted.st_mode & S_IFMT) | c->mode;
	r = treefile_copy_attributes(&c->copier, from_fd, &wanted, fd);
	return r < 0 ? err_sys(e, -r, "set its attributes") : 0;
}

/* What stands in the way of a file goes, unless it is a directory with something in it. */
static int clear_name(int dir_fd, const char *name, struct err *e)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno == EISDIR)
		return err_set(e, ERR_INVALID, "a directory is in its place");
	return err_sys(e, errno, "replace it");
}

static int copy_file(struct copying *c, int from_fd, const struct stat *st, const char *name,
		     struct err *e)
{
	cleanup_fd int fd = openat(c->target_dir_fd, name,
				   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	uint64_t ignored = 0;
	int r;

	if (fd < 0 && errno == EEXIST) {
		if (clear_name(c->target_dir_fd, name, e) < 0)
			return -1;
		fd = openat(c->target_dir_fd, name,
			    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		return err_sys(e, errno, "create it");
	r = treefile_copy_content(&c->copier, from_fd, st, fd, UINT64_MAX, &ignored);
	if (r < 0)
		return err_sys(e, -r, "copy its content");
	return set_attributes(c, from_fd, st, fd, e);
}

static int copy_special(struct copying *c, const char *from, const struct stat *st,
			const char *name, struct err *e)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };
	char target[COPYLIST_PATH_MAX_BYTES];
	cleanup_fd int fd = -1;
	ssize_t n = 0;

	if (clear_name(c->target_dir_fd, name, e) < 0)
		return -1;
	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(c->source_dir_fd, from, target, sizeof(target) - 1);
		if (n < 0)
			return err_sys(e, errno, "read the link");
		target[n] = '\0';
		if (symlinkat(target, c->target_dir_fd, name) < 0)
			return err_sys(e, errno, "create the link");
	} else if (mknodat(c->target_dir_fd, name, S_IFIFO | (st->st_mode & 07777), 0) < 0) {
		return err_sys(e, errno, "create the fifo");
	}
	fd = openat(c->target_dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open it");
	if (give(fd, c->has_owner ? c->uid : st->st_uid, c->has_owner ? c->gid : st->st_gid, e) < 0)
		return -1;
	if (utimensat(c->target_dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "set its time");
	return 0;
}

/* A directory that is there keeps what is in it and gets the attributes; a link to one counts. */
static int copy_directory(struct copying *c, int from_fd, const struct stat *st, const char *path,
			  struct err *e)
{
	cleanup_fd int fd = mount_open_in_root(c->root_fd, path, O_RDONLY | O_DIRECTORY);

	if (fd == -ENOENT) {
		if (make_dirs(c, path, e) < 0)
			return -1;
		fd = mount_open_in_root(c->root_fd, path, O_RDONLY | O_DIRECTORY);
	}
	if (fd == -ENOTDIR)
		return err_set(e, ERR_INVALID, "a file is in its place");
	if (fd < 0)
		return err_sys(e, -fd, "open it in the image");
	return set_attributes(c, from_fd, st, fd, e);
}

static int copy_entry_to(struct copying *c, const char *from, const char *path, struct err *e)
{
	cleanup_free char *target = path_absolute("/", path);
	cleanup_free char *source_dir = NULL, *target_dir = NULL;
	const char *name = path_base_name(from), *target_name = path_base_name(target);
	cleanup_fd int fd = -1;
	struct stat st;

	source_dir = mem_dup_bytes(from, name > from ? (size_t)(name - from - 1) : 0);
	if (open_source_dir(c, source_dir, e) < 0)
		return -1;
	if (fstatat(c->source_dir_fd, from[0] ? name : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "look at it");
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
		fd = openat(c->source_dir_fd, from[0] ? name : ".",
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			return err_sys(e, errno, "open it");
	}
	if (S_ISDIR(st.st_mode))
		return copy_directory(c, fd, &st, target, e);
	target_dir = mem_dup_bytes(target, (size_t)(target_name - target));
	if (open_target_dir(c, target_dir, e) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return copy_file(c, fd, &st, target_name, e);
	if (S_ISLNK(st.st_mode) || S_ISFIFO(st.st_mode))
		return copy_special(c, name, &st, target_name, e);
	return err_set(e, ERR_INVALID, "it became a device or a socket");
}

static int copy_entry(struct copying *c, const char *from, const char *path, struct err *e)
{
	if (copy_entry_to(c, from, path, e) == 0)
		return 0;
	(void)err_wrap(e, "copy '%.*s'", QUOTED_MAX_BYTES, from[0] ? from : ".");
	shown_replace(e->msg);
	return -1;
}

/* ---- archives ---- */

/* By their first bytes, as other builders decide. */
static bool is_archive(int fd)
{
	static const struct {
		unsigned at, len;
		const char *bytes;
	} kinds[] = { { 257, 5, "ustar" },
		      { 0, 3, "\x1f\x8b\x08" },
		      { 0, 3, "BZh" },
		      { 0, 6,
			"\xfd"
			"7zXZ" },
		      { 0, 4, "\x28\xb5\x2f\xfd" } };
	char head[512] = "";
	ssize_t n = pread(fd, head, sizeof(head), 0);

	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (n >= (ssize_t)(kinds[i].at + kinds[i].len) &&
		    memcmp(head + kinds[i].at, kinds[i].bytes, kinds[i].len) == 0)
			return true;
	return false;
}

/* Whether it was an archive. */
static int unpack(struct copying *c, const char *from, const char *path, bool *ret, struct err *e)
{
	cleanup_fd int fd =
		mount_open_plain(c->source_fd, from, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	const char *words[] = { "owners=keep", NULL };
	struct imagehelper_transfer t = { .operation = "files-unpack",
					  .words = words,
					  .stdin_fd = fd,
					  .stdout_fd = -1,
					  .answer_fd = -1,
					  .program = c->step->program };
	struct imagehelper_job job = { .report_fd = -1 };
	int r;

	*ret = fd >= 0 && is_archive(fd);
	if (!*ret)
		return 0;
	if (open_target_dir(c, path, e) < 0)
		return -1;
	t.dir_fd = c->target_dir_fd;
	r = imagehelper_start(&t, &job, e);
	if (r == 0)
		r = imagehelper_wait(&job, e);
	imagehelper_job_done(&job);
	return r < 0 ? err_wrap(e, "unpack '%.*s'", QUOTED_MAX_BYTES, from) : 0;
}

/* ---- sources ---- */

static bool is_directory(const struct copying *c, const char *path)
{
	cleanup_fd int fd = mount_open_in_root(c->root_fd, path, O_PATH | O_DIRECTORY);

	return fd >= 0;
}

static char *join(const char *dir, const char *name)
{
	size_t len = strlen(dir);

	return mem_format("%s%s%s", dir, len > 0 && dir[len - 1] == '/' ? "" : "/", name);
}

/* With --parents the name as given is kept, or what follows "/./" in it. */
static const char *kept_name(const struct copying *c, const struct copylist_source *s)
{
	const char *pivot = strstr(s->given, "/./");

	if (!c->step->keeps_parents)
		return s->is_dir ? "" : path_base_name(s->given);
	return pivot ? pivot + 3 : s->given;
}

/* What was written into a directory has changed its time: set it again, children first. */
static int set_directory_times(struct copying *c, const struct copylist *l,
			       const struct copylist_source *s, const char *top, bool is_top_kept,
			       struct err *e)
{
	size_t below = s->path[0] ? strlen(s->path) + 1 : 0;

	for (size_t i = s->count; i > is_top_kept; i--) {
		const struct copylist_entry *n = &l->entries[s->first + i - 1];
		const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, n->modified };
		cleanup_free char *target = i == 1 ? mem_dup(top) : join(top, n->path + below);
		cleanup_fd int fd = -1;

		if (!S_ISDIR(n->mode))
			continue;
		fd = mount_open_in_root(c->root_fd, target, O_RDONLY | O_DIRECTORY);
		if (fd < 0 || futimens(fd, times) < 0)
			return complain("set the time of", target, fd < 0 ? -fd : errno, e);
	}
	return 0;
}

static int copy_source(struct copying *c, const struct copylist *l, const struct copylist_source *s,
		       bool is_into, struct err *e)
{
	const char *dest = c->step->destination;
	cleanup_free char *top = is_into || (c->step->keeps_parents && kept_name(c, s)[0])
					 ? join(dest, kept_name(c, s))
					 : mem_dup(dest);
	size_t below = s->path[0] ? strlen(s->path) + 1 : 0;
	bool is_unpacked = false, is_top_kept = false;

	if (!s->is_dir && c->step->unpacks && unpack(c, s->path, dest, &is_unpacked, e) < 0)
		return -1;
	if (is_unpacked)
		return 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct copylist_entry *n = &l->entries[s->first + i];
		cleanup_free char *target = i == 0 ? mem_dup(top) : join(top, n->path + below);

		/* what is copied are the contents: a directory that is there stays as it is */
		if (i == 0 && s->is_dir && is_directory(c, top) && !c->step->keeps_parents) {
			is_top_kept = true;
			continue;
		}
		if (copy_entry(c, n->path, target, e) < 0)
			return -1;
	}
	return s->is_dir ? set_directory_times(c, l, s, top, is_top_kept, e) : 0;
}

static int write_text(struct copying *c, const struct copystep_text *t, bool is_into, struct err *e)
{
	cleanup_free char *path =
		is_into ? join(c->step->destination, t->name) : mem_dup(c->step->destination);
	cleanup_free char *dir = mem_dup_bytes(path, (size_t)(path_base_name(path) - path));
	const char *name = path_base_name(path);
	cleanup_fd int fd = -1;
	int r;

	if (open_target_dir(c, dir, e) < 0 || clear_name(c->target_dir_fd, name, e) < 0)
		return -1;
	fd = openat(c->target_dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	r = fd < 0 ? -errno : file_write_all(fd, t->content, strlen(t->content));
	if (r < 0)
		return complain("write", path, -r, e);
	if (c->has_owner && give(fd, c->uid, c->gid, e) < 0)
		return -1;
	if (fchmod(fd, c->has_mode ? c->mode : 0644) < 0)
		return complain("set the mode of", path, errno, e);
	return 0;
}

static int copy_all(struct copying *c, const struct copylist *l, struct err *e)
{
	const struct copystep *s = c->step;
	size_t len = strlen(s->destination), count = s->text_count;
	bool is_into = len > 0 && s->destination[len - 1] == '/';

	for (size_t i = 0; i < l->source_count; i++)
		count++;
	if (count > 1 && !is_into && !is_directory(c, s->destination))
		return err_set(e, ERR_INVALID,
			       "several sources need a destination that is a directory and ends in "
			       "'/': '%.*s/'",
			       QUOTED_MAX_BYTES, s->destination);
	is_into = is_into || is_directory(c, s->destination);
	for (size_t i = 0; i < l->source_count; i++)
		if (copy_source(c, l, &l->sources[i], is_into && !l->sources[i].is_dir, e) < 0)
			return -1;
	for (unsigned i = 0; i < s->text_count; i++)
		if (write_text(c, &s->texts[i], is_into, e) < 0)
			return -1;
	return 0;
}

static int look_up(struct copying *c, struct copylist *l, struct err *e)
{
	const struct copystep *s = c->step;
	const struct copylist_options o = { .root_fd = c->source_fd,
					    .excluded = s->excluded,
					    .where = s->where };

	for (char *const *word = s->words; word && *word; word++)
		if (copylist_add(l, &o, *word, e) < 0)
			return -1;
	return 0;
}

static int copy_from_stage(struct copying *c, struct err *e)
{
	CLEANUP(copylist_done) struct copylist l = { 0 };

	if (stageroot_mount_lower(&c->step->root, c->step->from_lower, &c->source_fd, e) < 0 ||
	    look_up(c, &l, e) < 0)
		return -1;
	return copy_all(c, &l, e);
}

int copystep_run(const struct copystep *s, struct err *e)
{
	struct copying c = { .step = s,
			     .source_fd = s->context_fd,
			     .root_fd = -1,
			     .source_dir_fd = -1,
			     .target_dir_fd = -1 };
	static const struct copylist nothing;

	(void)umask(0);
	/* the process ends after this: nothing is given back */
	if (stageroot_enter(&s->root, e) < 0 || stageroot_mount(&s->root, &c.root_fd, e) < 0 ||
	    read_attributes(&c, e) < 0)
		return -1;
	if (s->makes_directory)
		return make_dirs(&c, s->destination, e);
	if (s->from_lower)
		return copy_from_stage(&c, e);
	return copy_all(&c, s->list ? s->list : &nothing, e);
}
