/*
 * files - access to a named sandbox's files from outside; see files.h.
 *
 * Theory of operation. files_open() gets the root and the namespaces from the supervisor and forks
 * the agent: a child in the sandbox's user namespace, with the ids of the sandbox's user, that
 * serves one request at a time over a socket (base/frame): a struct with a path, answered
 * with an error or a result and perhaps a descriptor. It is in the sandbox's mount namespace, where
 * the kernel refuses to remove or rename a mount point, and outside its pid namespace, so that no
 * process inside can see or signal it. It ends with us and executes nothing.
 */
#include "named/files.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/frame.h"
#include "base/mem.h"
#include "base/sweep.h"
#include "base/title.h"
#include "named/control.h"
#include "named/lifecycle.h"
#include "named/named.h"
#include "named/wake.h"
#include "tree/owner.h"
#include "host/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum operation { OP_OPEN = 1, OP_STAT, OP_LIST, OP_MKDIR, OP_REMOVE };
enum { ANSWER_OK = 100, ANSWER_FAILED };

/* Followed by the path, NUL-terminated. */
struct request {
	uint32_t flags;
	uint32_t mode;
};

/* Followed by the name and the link's target. */
struct entry_head {
	uint32_t mode, uid, gid, reserved;
	uint64_t size_bytes, modified_ms;
};

/* ---- the agent ---- */

struct agent {
	int root_fd;
	int socket_fd;
	int own_fds_fd; /* /proc/PID/fd of the agent, which the sandbox's /proc does not show */
};

static int name_error(int error, const char *path, struct err *e)
{
	if (error == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "no '%s' in the sandbox", path);
	if (error == EEXIST)
		return err_set(e, ERR_EXISTS, "'%s' already exists", path);
	if (error == EISDIR)
		return err_set(e, ERR_INVALID, "'%s' is a directory", path);
	if (error == ENOTDIR)
		return err_set(e, ERR_INVALID, "'%s', or a part of it, is not a directory", path);
	if (error == EBUSY)
		return err_set(e, ERR_DENIED,
			       "'%s' is protected, masked or mounted in this sandbox", path);
	if (error == EACCES || error == EPERM || error == EROFS) {
		(void)err_sys(e, error, "'%s'", path);
		e->code = ERR_DENIED;
		return -1;
	}
	return err_sys(e, error, "'%s'", path);
}

/* Opens the parent directory of the path; *ret_name is the path's last component. */
static int open_parent(const struct agent *a, const char *path, const char **ret_name, int *ret_fd,
		       struct err *e)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *parent = mem_dup_bytes(path, slash ? (size_t)(slash - path) : 0);
	int fd;

	*ret_name = slash ? slash + 1 : path;
	if (!**ret_name || strcmp(*ret_name, ".") == 0 || strcmp(*ret_name, "..") == 0)
		return err_set(e, ERR_INVALID, "'%s' has no name at its end", path);
	fd = mount_open_in_root(a->root_fd, parent[0] ? parent : "/", O_PATH | O_DIRECTORY);
	if (fd < 0)
		return name_error(-fd, path, e);
	*ret_fd = fd;
	return 0;
}

static int make_dirs(const struct agent *a, const char *path, struct err *e)
{
	cleanup_free char *partial = mem_dup(path);

	for (char *slash = strchr(partial + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		cleanup_fd int parent_fd = -1;
		const char *name = NULL;

		*slash = '\0';
		if (open_parent(a, partial, &name, &parent_fd, e) < 0)
			return -1;
		if (mkdirat(parent_fd, name, 0755) < 0 && errno != EEXIST)
			return name_error(errno, partial, e);
		*slash = '/';
	}
	return 0;
}

static int check_plain(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return name_error(errno, path, e);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "'%s' is a directory", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "'%s' is not a plain file", path);
	return 0;
}

/* Opens a plain file: never blocks on a fifo, never creates through a dangling link. */
static int open_for(const struct agent *a, const struct request *q, const char *path, int *ret_fd,
		    struct err *e)
{
	int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	cleanup_fd int fd = -1;

	if (!(q->flags & FILES_WRITE))
		flags |= O_RDONLY;
	else
		flags |= (q->flags & (FILES_READ | FILES_EDIT) ? O_RDWR : O_WRONLY) |
			 (q->flags & FILES_APPEND ? O_APPEND : 0);
	fd = q->flags & FILES_NEW ? -ENOENT : mount_open_in_root(a->root_fd, path, flags);
	if (fd == -ENOENT && q->flags & FILES_WRITE && !(q->flags & FILES_EDIT)) {
		cleanup_fd int parent_fd = -1;
		const char *name = NULL;

		if (open_parent(a, path, &name, &parent_fd, e) < 0)
			return -1;
		fd = openat(parent_fd, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW,
			    q->mode & 07777);
		if (fd < 0)
			fd = -errno;
	}
	if (fd == -ENXIO)
		return err_set(e, ERR_INVALID, "'%s' is not a plain file", path);
	if (fd < 0)
		return name_error(-fd, path, e);
	if (check_plain(fd, path, e) < 0)
		return -1;
	if (q->flags & FILES_WRITE && !(q->flags & (FILES_APPEND | FILES_EDIT)) &&
	    ftruncate(fd, 0) < 0)
		return name_error(errno, path, e);
	*ret_fd = take_fd(&fd);
	return 0;
}

static void add_entry(int dir_fd, const char *name, const struct stat *st, struct buf *out)
{
	const struct entry_head head = {
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size_bytes = (uint64_t)st->st_size,
		.modified_ms = (uint64_t)st->st_mtim.tv_sec * 1000 +
			       (uint64_t)st->st_mtim.tv_nsec / 1000000,
	};
	char target[PATH_MAX] = "";
	ssize_t n = S_ISLNK(st->st_mode) ? readlinkat(dir_fd, name, target, sizeof(target) - 1) : 0;

	target[n > 0 ? n : 0] = '\0';
	buf_add(out, &head, sizeof(head));
	buf_add(out, name, strlen(name) + 1);
	buf_add(out, target, strlen(target) + 1);
}

static int stat_one(const struct agent *a, const char *path, struct buf *out, struct err *e)
{
	cleanup_fd int fd = mount_open_in_root(a->root_fd, path, O_PATH | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return name_error(fd < 0 ? -fd : errno, path, e);
	add_entry(fd, "", &st, out);
	return 0;
}

static int list_all(const struct agent *a, const char *path, struct buf *out, struct err *e)
{
	int fd = mount_open_in_root(a->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned count = 0;
	struct stat st;
	int sys;

	if (!dir)
		return name_error(fd < 0 ? -fd : errno, path, e);
	while ((errno = 0, count <= FILES_LIST_MAX && (entry = readdir(dir)))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		add_entry(dirfd(dir), entry->d_name, &st, out);
		count++;
	}
	sys = errno;
	(void)closedir(dir);
	return sys != 0 ? name_error(sys, path, e) : 0;
}

static int make_one(const struct agent *a, const struct request *q, const char *path, struct err *e)
{
	cleanup_fd int parent_fd = -1;
	const char *name = NULL;
	struct stat st;

	if (open_parent(a, path, &name, &parent_fd, e) < 0)
		return -1;
	if (mkdirat(parent_fd, name, q->mode & 07777) == 0)
		return 0;
	/* FILES_PARENTS: an existing directory is success */
	if (errno == EEXIST && q->flags & FILES_PARENTS &&
	    fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return name_error(errno, path, e);
}

static int remove_tree(int parent_fd, const char *name, const char *path, struct err *e)
{
	if (sweep_tree(parent_fd, name, e) == 0)
		return 0;
	return e->sys == EBUSY ? name_error(EBUSY, path, e) : -1;
}

static int remove_one(const struct agent *a, const struct request *q, const char *path,
		      struct err *e)
{
	cleanup_fd int parent_fd = -1;
	const char *name = NULL;
	struct stat st;

	if (open_parent(a, path, &name, &parent_fd, e) < 0)
		return -1;
	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return name_error(errno, path, e);
	if (q->flags & FILES_TREE)
		return remove_tree(parent_fd, name, path, e);
	if (unlinkat(parent_fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
		return name_error(errno, path, e);
	return 0;
}

static int serve_one(const struct agent *a, const struct frame *f, struct buf *out, int *ret_fd,
		     struct err *e)
{
	const char *path = f->bytes + sizeof(struct request);
	struct request q;

	if (f->len < sizeof(q) + 1 || f->bytes[f->len - 1] != '\0')
		return err_set(e, ERR_INVALID, "half a request");
	memcpy(&q, f->bytes, sizeof(q));
	if (q.flags & FILES_PARENTS && make_dirs(a, path, e) < 0)
		return -1;
	switch (f->kind) {
	case OP_OPEN:
		return open_for(a, &q, path, ret_fd, e);
	case OP_STAT:
		return stat_one(a, path, out, e);
	case OP_LIST:
		return list_all(a, path, out, e);
	case OP_MKDIR:
		return make_one(a, &q, path, e);
	case OP_REMOVE:
		return remove_one(a, &q, path, e);
	}
	return err_set(e, ERR_INVALID, "no such request");
}

static int agent_begin(struct agent *a, const struct owner_identity *who, struct err *e)
{
	a->own_fds_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (a->own_fds_fd < 0)
		return err_sys(e, errno, "open /proc/self/fd");
	return owner_become(who, e);
}

static _Noreturn void agent_main(struct agent *a, const struct owner_identity *who)
{
	struct err e = { 0 };
	bool is_ready;
	struct frame f;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	is_ready = agent_begin(a, who, &e) == 0;
	(void)umask(0);
	while (frame_receive(a->socket_fd, FRAME_WAIT, &f) == 1) {
		cleanup_buf struct buf out;
		cleanup_fd int fd = -1;
		int r;

		buf_init(&out, FRAME_BODY_MAX_BYTES);
		if (!is_ready || serve_one(a, &f, &out, &fd, &e) < 0)
			r = frame_send(a->socket_fd, ANSWER_FAILED, &e, sizeof(e), NULL, 0);
		else
			r = frame_send(a->socket_fd, ANSWER_OK, out.bytes, out.len, &fd,
				       fd >= 0 ? 1 : 0);
		frame_done(&f);
		if (r < 0)
			break; /* our end closes, so that the caller does not wait for an answer */
	}
	_exit(0);
}

/* ---- our side ---- */

void files_init(struct files *f)
{
	*f = (struct files){
		.control_fd = -1, .root_fd = -1, .userns_fd = -1, .mntns_fd = -1, .agent_fd = -1
	};
}

void files_close(struct files *f)
{
	cleanup_closep(&f->agent_fd);
	cleanup_closep(&f->control_fd);
	if (f->agent_pid > 0) {
		(void)kill(f->agent_pid, SIGKILL); /* our child, not yet reaped */
		while (waitpid(f->agent_pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	cleanup_closep(&f->root_fd);
	cleanup_closep(&f->userns_fd);
	cleanup_closep(&f->mntns_fd);
	free(f->sandbox);
	files_init(f);
}

static int start_agent(struct files *f, struct err *e)
{
	const struct owner_identity who = {
		.userns_fd = f->userns_fd, .mntns_fd = f->mntns_fd, .uid = f->uid, .gid = f->gid
	};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, errno, "create a socket");
	f->agent_pid = fork();
	if (f->agent_pid == 0) {
		struct agent a = { .root_fd = f->root_fd, .socket_fd = ends[1] };

		(void)close(ends[0]);
		title_set(TITLE_FILES, f->sandbox);
		agent_main(&a, &who);
	}
	f->agent_fd = ends[0];
	(void)close(ends[1]);
	if (f->agent_pid < 0)
		return err_sys(e, errno, "start a process for the sandbox's files");
	return 0;
}

int files_open(const struct ak *ak, const char *sandbox, struct files *ret, struct err *e)
{
	CLEANUP(files_close) struct files f;
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };
	CLEANUP(frame_done) struct frame answer = { 0 };
	cleanup_fd int control_fd = -1;

	files_init(&f);
	named_init(&n);
	if (named_open(ak, sandbox, &n, e) < 0 || wake_connect(ak, &n, &control_fd, e) < 0 ||
	    named_load_policy(&n, &policy, e) < 0 ||
	    control_ask(control_fd, CONTROL_FILES, NULL, 0, &answer, e) < 0)
		return -1;
	if (answer.fd_count != 3)
		return err_set(e, ERR_REMOTE,
			       "the supervisor of sandbox '%s' is of another version (restart the "
			       "sandbox)",
			       sandbox);
	f.control_fd = take_fd(&control_fd);
	f.root_fd = take_fd(&answer.fds[0]);
	f.userns_fd = take_fd(&answer.fds[1]);
	f.mntns_fd = take_fd(&answer.fds[2]);
	f.uid = policy.uid;
	f.gid = policy.gid;
	f.ak = ak;
	f.sandbox = mem_dup(sandbox);
	if (start_agent(&f, e) < 0)
		return -1;
	*ret = f;
	files_init(&f);
	return 0;
}

static int check_path(const char *path, struct err *e)
{
	if (path[0] != '/')
		return err_set(e, ERR_INVALID, "'%s' is not an absolute path inside", path);
	if (strlen(path) >= FILES_PATH_MAX_BYTES)
		return err_set(e, ERR_INVALID, "a path is longer than %u bytes",
			       FILES_PATH_MAX_BYTES);
	return 0;
}

static int ask(struct files *f, enum operation op, const struct request *q, const char *path,
	       struct frame *ret, struct err *e)
{
	cleanup_buf struct buf body;
	int r;

	buf_init(&body, 2 * FILES_PATH_MAX_BYTES);
	if (check_path(path, e) < 0)
		return -1;
	buf_add(&body, q, sizeof(*q));
	buf_add(&body, path, strlen(path) + 1);
	r = frame_send(f->agent_fd, op, body.bytes, body.len, NULL, 0);
	if (r == 0)
		r = frame_receive(f->agent_fd, FRAME_WAIT, ret);
	if (r != 1)
		return err_set(e, ERR_SYSTEM, "the process for the sandbox's files died");
	if (ret->kind == ANSWER_OK)
		return 0;
	if (ret->len == sizeof(*e))
		memcpy(e, ret->bytes, sizeof(*e));
	err_sanitize(e);
	frame_done(ret);
	return -1;
}

/* Writes a change, successful or not, to the audit log. */
static int noted(const struct files *f, int r, const char *act, const char *path,
		 const struct err *e)
{
	cleanup_free char *what = mem_format("%s %s", act, path);

	lifecycle_audit(f->ak, AUDITLINE_FILE, f->sandbox, what, r < 0 ? e : NULL);
	return r;
}

int files_open_file(struct files *f, const char *path, unsigned flags, mode_t mode, int *ret_fd,
		    struct err *e)
{
	const struct request q = { flags, mode };
	CLEANUP(frame_done) struct frame answer = { 0 };
	int r = ask(f, OP_OPEN, &q, path, &answer, e);

	if (r == 0 && answer.fd_count != 1)
		r = err_set(e, ERR_SYSTEM, "no descriptor came");
	if (r == 0)
		*ret_fd = take_fd(&answer.fds[0]);
	return flags & FILES_WRITE ? noted(f, r, "write", path, e) : r;
}

int files_read(struct files *f, const char *path, uint64_t offset, struct buf *out,
	       uint64_t *ret_size, struct err *e)
{
	cleanup_fd int fd = -1;
	char piece[16384];
	struct stat st;
	ssize_t n;

	if (files_open_file(f, path, FILES_READ, 0, &fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s'", path);
	*ret_size = (uint64_t)st.st_size;
	while (!out->is_cut && (n = pread(fd, piece, sizeof(piece), (off_t)offset)) > 0) {
		buf_add(out, piece, (size_t)n);
		offset += (uint64_t)n;
	}
	return 0;
}

int files_write(struct files *f, const char *path, unsigned flags, mode_t mode, const void *bytes,
		size_t len, struct err *e)
{
	cleanup_fd int fd = -1;
	int r;

	if (files_open_file(f, path, flags | FILES_WRITE, mode, &fd, e) < 0)
		return -1;
	r = file_write_all(fd, bytes, len);
	if (r < 0)
		return err_sys(e, -r, "write '%s'", path);
	return 0;
}

/* ---- entries ---- */

void files_entry_done(struct files_entry *entry)
{
	free(entry->name);
	free(entry->target);
	*entry = (struct files_entry){ 0 };
}

void files_list_done(struct files_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		files_entry_done(&l->entries[i]);
	free(l->entries);
	*l = (struct files_list){ 0 };
}

/* Parses the next entry; false: no complete entry is left. */
static bool take_entry(const struct frame *f, size_t *at, struct files_entry *ret)
{
	struct entry_head head;
	const char *name, *target;

	/* base/frame adds a NUL after the bytes, so strlen() stays inside */
	if (f->len - *at <= sizeof(head))
		return false;
	memcpy(&head, f->bytes + *at, sizeof(head));
	name = f->bytes + *at + sizeof(head);
	target = name + strlen(name) + 1;
	if (target >= f->bytes + f->len)
		return false;
	*at = (size_t)(target - f->bytes) + strlen(target) + 1;
	*ret = (struct files_entry){
		.name = mem_dup(name),
		.target = target[0] ? mem_dup(target) : NULL,
		.mode = head.mode,
		.uid = head.uid,
		.gid = head.gid,
		.size_bytes = head.size_bytes,
		.modified_ms = head.modified_ms,
	};
	return *at <= f->len;
}

int files_stat(struct files *f, const char *path, struct files_entry *ret, struct err *e)
{
	const struct request q = { 0 };
	CLEANUP(frame_done) struct frame answer = { 0 };
	size_t at = 0;

	if (ask(f, OP_STAT, &q, path, &answer, e) < 0)
		return -1;
	if (!take_entry(&answer, &at, ret))
		return err_set(e, ERR_SYSTEM, "half an answer came");
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct files_entry *)a)->name, ((const struct files_entry *)b)->name);
}

int files_list(struct files *f, const char *path, struct files_list *ret, struct err *e)
{
	const struct request q = { 0 };
	CLEANUP(frame_done) struct frame answer = { 0 };
	struct files_entry entry;
	size_t at = 0;

	*ret = (struct files_list){ 0 };
	if (ask(f, OP_LIST, &q, path, &answer, e) < 0)
		return -1;
	while (ret->count < FILES_LIST_MAX && take_entry(&answer, &at, &entry)) {
		ret->entries = mem_grow(ret->entries, ret->count + 1, sizeof(*ret->entries));
		ret->entries[ret->count++] = entry;
	}
	ret->is_cut = at < answer.len;
	if (ret->count > 1)
		qsort(ret->entries, ret->count, sizeof(*ret->entries), by_name);
	return 0;
}

/* ---- changes ---- */

int files_mkdir(struct files *f, const char *path, unsigned flags, mode_t mode, struct err *e)
{
	const struct request q = { flags, mode };
	CLEANUP(frame_done) struct frame answer = { 0 };

	return noted(f, ask(f, OP_MKDIR, &q, path, &answer, e), "mkdir", path, e);
}

int files_remove(struct files *f, const char *path, unsigned flags, struct err *e)
{
	const struct request q = { .flags = flags };
	CLEANUP(frame_done) struct frame answer = { 0 };

	return noted(f, ask(f, OP_REMOVE, &q, path, &answer, e), "remove", path, e);
}
