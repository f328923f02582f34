/*
 * runstep - RUN; see runstep.h.
 *
 * Theory of operation. The sandbox is one of engine/run, under the policy of the build's request;
 * only what a build has no use for (workspace, home, ports, the caller's variables) is taken away.
 * Before it starts, the paths that a start creates are looked up in the layers below; after it,
 * those that the layers did not have and that are still empty are removed from the upper directory,
 * and so are the files about names (/etc/hosts), which are never the image's.
 *
 * Hostile input: the upper directory, which the command wrote. No link is followed in it.
 */
#include "build/runstep.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "engine/run.h"
#include "host/mount.h"
#include "image/layeraccounts.h"
#include "image/record.h"
#include "policy/policyimage.h"
#include "tree/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DENIALS_SHOWN 3u

/* ---- the layers below ---- */

struct lower {
	int fds[RECORD_LAYERS_MAX + 1];
	unsigned count;
};

static void lower_done(struct lower *l)
{
	for (unsigned i = 0; i < l->count; i++)
		cleanup_closep(&l->fds[i]);
}

static int open_lower(const struct runstep *s, struct lower *ret, struct err *e)
{
	for (const char *at = s->lower; *at; at += *at == ':') {
		size_t len = strcspn(at, ":");
		cleanup_free char *name = mem_dup_bytes(at, len);
		int fd;

		if (ret->count == COUNT_OF(ret->fds))
			return err_set(e, ERR_LIMIT, "the stage has too many layers");
		fd = openat(s->layers_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, errno, "open a layer");
		ret->fds[ret->count++] = fd;
		at += len;
	}
	return 0;
}

static bool is_opaque(int fd)
{
	char value;

	return fgetxattr(fd, "user.overlay.opaque", &value, sizeof(value)) > 0;
}

/* Does this layer hide what those below have of the path? */
static bool hides(int layer_fd, const char *path)
{
	cleanup_free char *part = mem_dup(path);

	for (char *at = part;;) {
		char *slash = strchr(at, '/');
		cleanup_fd int fd = -1;

		if (slash)
			*slash = '\0';
		fd = mount_open_plain(layer_fd, part, O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			return fd != -ENOENT; /* a file, a link or a whiteout */
		if (is_opaque(fd))
			return true;
		if (!slash)
			return false;
		*slash = '/';
		at = slash + 1;
	}
}

/* The entry as the layers show it; `path` has no slash in front. */
static bool find_lower(const struct lower *l, const char *path, struct stat *ret)
{
	for (unsigned i = 0; i < l->count; i++) {
		cleanup_fd int fd = mount_open_plain(l->fds[i], path, O_PATH | O_NOFOLLOW);

		if (fd >= 0 && fstat(fd, ret) == 0)
			return !S_ISCHR(ret->st_mode);
		if (hides(l->fds[i], path))
			return false;
	}
	return false;
}

/* ---- what a start leaves in the upper directory ---- */

static const char *const written[] = { "etc/hosts", "etc/hostname", "etc/resolv.conf", NULL };
/* children before parents */
static const char *const made[] = { "proc", "sys", "dev", "tmp", "var/tmp",
				    "var",  "run", "etc", NULL };

struct cleaning {
	int upper_fd;
	const struct lower *lower;
	const struct runstep *step;
};

static void remove_written(const struct cleaning *c)
{
	for (const char *const *path = written; *path; path++) {
		const char *name = path_base_name(*path);
		cleanup_free char *dir = mem_dup_bytes(*path, (size_t)(name - *path));
		cleanup_fd int fd = mount_open_plain(c->upper_fd, dir, O_RDONLY | O_DIRECTORY);

		if (fd >= 0)
			(void)unlinkat(fd, name, 0); /* a directory is the image's own */
	}
}

/* Removes it if it is an empty thing that the layers lack, or only a copy of what they have. */
static void remove_empty(const struct cleaning *c, const char *path)
{
	const char *name = path_base_name(path);
	cleanup_free char *dir = mem_dup_bytes(path, (size_t)(name - path));
	cleanup_fd int dir_fd =
		mount_open_plain(c->upper_fd, dir[0] ? dir : ".", O_RDONLY | O_DIRECTORY);
	cleanup_fd int fd = -1;
	struct stat st, below;
	bool is_below;

	if (dir_fd < 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	is_below = find_lower(c->lower, path, &below);
	if (S_ISREG(st.st_mode) && st.st_size == 0 && !is_below)
		(void)unlinkat(dir_fd, name, 0);
	if (!S_ISDIR(st.st_mode))
		return;
	if (is_below) {
		fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || is_opaque(fd) || !S_ISDIR(below.st_mode) ||
		    below.st_mode != st.st_mode || below.st_uid != st.st_uid ||
		    below.st_gid != st.st_gid)
			return;
	}
	(void)unlinkat(dir_fd, name, AT_REMOVEDIR); /* not if there is something in it */
}

/* A mount point and the parents that were made for it. */
static void remove_chain(const struct cleaning *c, const char *path)
{
	cleanup_free char *part = mem_dup(path + strspn(path, "/"));

	while (part[0]) {
		char *slash = strrchr(part, '/');

		remove_empty(c, part);
		if (!slash)
			return;
		*slash = '\0';
	}
}

static int clean(void *context, struct err *e)
{
	const struct cleaning *c = context;
	const struct policy *p = c->step->policy;

	(void)e;
	remove_written(c);
	for (unsigned i = 0; i < c->step->mount_count; i++)
		remove_chain(c, c->step->mounts[i].target);
	remove_chain(c, p->workdir);
	remove_chain(c, p->home_dir);
	for (const char *const *path = made; *path; path++)
		remove_empty(c, *path);
	return 0;
}

static int clean_upper(const struct runstep *s, const struct lower *l, struct err *e)
{
	cleanup_free char *path = mem_format("%s/upper", s->work);
	cleanup_fd int upper_fd = openat(s->layers_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct cleaning c = { upper_fd, l, s };

	if (upper_fd < 0)
		return err_sys(e, errno, "open what the step has changed");
	return owner_run(clean, &c, NULL, 0, e);
}

/* ---- the sandbox ---- */

static int describe(struct rootspec_dir *dir, const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(e, errno, "look at '%s'", path);
	*dir = (struct rootspec_dir){
		.path = path, .device = st.st_dev, .inode = st.st_ino, .tree_fd = -1
	};
	return 0;
}

static void set_text(char **text, char *value)
{
	free(*text);
	*text = value;
}

static int add_mounts(struct policy *p, const struct runstep *s, struct err *e)
{
	p->mount_count = 0;
	p->tmpfs_count = 0;
	for (unsigned i = 0; i < s->mount_count; i++) {
		const struct runstep_mount *m = &s->mounts[i];

		if (p->mount_count == POLICY_MOUNTS_MAX || p->tmpfs_count == POLICY_TMPFS_MAX)
			return err_set(e, ERR_LIMIT, "more than %u mounts", POLICY_MOUNTS_MAX);
		if (m->source)
			p->mounts[p->mount_count++] =
				(struct policy_mount){ mem_dup(m->source), mem_dup(m->target),
						       m->is_read_only, true };
		else
			p->tmpfs[p->tmpfs_count++] =
				(struct policy_tmpfs){ mem_dup(m->target), m->size_bytes };
	}
	return 0;
}

/* The policy of this command: the request's, less what is the caller's own. */
static int shape_policy(const struct runstep *s, struct err *e)
{
	struct policy *p = s->policy;
	const char *names[RECORD_LAYERS_MAX + 1];
	cleanup_free char *list = mem_dup(s->lower), *passwd = NULL, *group = NULL;
	struct policyimage image = { .env = s->env, .user = s->user, .workdir = s->workdir };
	unsigned count = 0;
	char *save = NULL;

	for (char *name = strtok_r(list, ":", &save); name && count < COUNT_OF(names);
	     name = strtok_r(NULL, ":", &save))
		names[count++] = name;
	passwd = layeraccounts_read(s->layers_fd, names, count, "etc/passwd");
	group = layeraccounts_read(s->layers_fd, names, count, "etc/group");
	image.passwd = passwd;
	image.group = group;
	set_text(&p->workspace, NULL);
	set_text(&p->home, NULL);
	set_text(&p->user_text, NULL);
	p->publish = NULL;
	p->places = NULL;
	p->passed = NULL;
	p->passes_env = p->is_clone = p->is_workdir_asked = p->is_read_only = false;
	if (s->has_no_network)
		p->has_network = false;
	if (add_mounts(p, s, e) < 0)
		return -1;
	return policyimage_apply(p, &image, e);
}

static void explain(const struct run_result *r, const struct policy *p, struct runstep_result *ret)
{
	char amount[PARSE_FORMAT_MAX_BYTES];
	size_t len;

	switch (r->end) {
	case RUN_OUT_OF_MEMORY:
		(void)snprintf(ret->words, sizeof(ret->words),
			       "it ran out of memory: its limit is %s (raise it with --memory)",
			       parse_format_bytes(p->memory_bytes, amount));
		return;
	case RUN_OUT_OF_PIDS:
		(void)snprintf(ret->words, sizeof(ret->words),
			       "it had too many processes (raise the limit with --pids)");
		return;
	case RUN_TIMED_OUT:
		(void)snprintf(ret->words, sizeof(ret->words), "it took longer than --timeout");
		return;
	case RUN_OUT_OF_CPU:
		(void)snprintf(ret->words, sizeof(ret->words), "it used up its --cpu-time");
		return;
	case RUN_SIGNALLED:
		(void)snprintf(ret->words, sizeof(ret->words), "it was ended by signal %d",
			       r->signal_number);
		return;
	case RUN_SANDBOX_ENDED:
		(void)snprintf(ret->words, sizeof(ret->words), "its sandbox ended");
		return;
	case RUN_EXITED:
		break;
	}
	if (r->reached_pids)
		(void)snprintf(ret->words, sizeof(ret->words),
			       "it reached its limit of processes (raise it with --pids)");
	for (unsigned i = 0; i < r->denial_count && i < DENIALS_SHOWN; i++) {
		len = strlen(ret->words);
		(void)snprintf(ret->words + len, sizeof(ret->words) - len,
			       "%sthe network policy denied %.100s: %.100s%s%.60s%s",
			       len ? "; " : "", r->denials[i].host, r->denials[i].reason,
			       r->denials[i].fix[0] ? " (add " : "", r->denials[i].fix,
			       r->denials[i].fix[0] ? ")" : "");
	}
}

int runstep_run(const struct runstep *s, struct runstep_result *ret, struct err *e)
{
	cleanup_free char *disk = mem_format("%s/%s", s->layers_path, s->work);
	CLEANUP(run_result_done) struct run_result result = { 0 };
	CLEANUP(lower_done) struct lower lower = { .count = 0 };
	struct rootspec_image root;
	const struct run_options options = {
		.policy = s->policy,
		.ak = s->ak,
		.root = &root,
		.argv = s->argv,
		.tty = STREAMS_TTY_OFF,
		.lifeline_fd = s->lifeline_fd,
	};

	rootspec_init(&root);
	root.layers = s->lower;
	if (shape_policy(s, e) < 0 || open_lower(s, &lower, e) < 0 ||
	    describe(&root.dirs[ROOTSPEC_LAYERS], s->layers_path, e) < 0 ||
	    describe(&root.dirs[ROOTSPEC_DISK], disk, e) < 0 ||
	    run_command(&options, &result, e) < 0)
		return -1;
	ret->exit_code = result.exit_code;
	if (result.exit_code != 0) {
		explain(&result, s->policy, ret);
		return 0;
	}
	return clean_upper(s, &lower, e);
}
