/* buildstore - the image store as a build uses it; see buildstore.h. */
#include "build/buildstore.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "build/stepcache.h"
#include "engine/imagehelper.h"
#include "engine/images.h"
#include "host/idmap.h"
#include "named/layertransfer.h"
#include "state/ak.h"
#include "state/statedir.h"
#include "tree/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORK_PREFIX "build-"
#define WORK_NAME_BYTES (sizeof(WORK_PREFIX) - 1 + 12)
#define COMPOSE_ANSWER_MAX_BYTES 256u

void buildstore_init(struct buildstore *s)
{
	*s = (struct buildstore){ .layers_fd = -1,
				  .steps_fd = -1,
				  .blobs_fd = -1,
				  .partial_fd = -1,
				  .lock_fd = -1,
				  .work_lock_fd = -1 };
}

static int open_at(int parent_fd, const char *name, int *ret_fd, struct err *e)
{
	struct stat st;

	if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s' in the image store", name);
	*ret_fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (*ret_fd < 0 || fstat(*ret_fd, &st) < 0)
		return err_sys(e, errno, "open '%s' in the image store", name);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(e, ERR_DENIED,
			       "'%s' in the image store is not a directory of this user alone",
			       name);
	return 0;
}

static int take_lock(int dir_fd, const char *name, int how, int *ret_fd, struct err *e)
{
	*ret_fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	while (*ret_fd < 0 || flock(*ret_fd, how) < 0)
		if (*ret_fd < 0 || errno != EINTR)
			return err_sys(e, errno, "lock the image store");
	return 0;
}

/* "build-" and twelve letters: which build something belongs to. Is it still there? */
static bool is_in_use(const struct buildstore *s, const char *name)
{
	cleanup_free char *lock = mem_format("making/%.*s.lock", (int)WORK_NAME_BYTES, name);
	cleanup_fd int lock_fd = openat(s->layers_fd, lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	return lock_fd >= 0 && flock(lock_fd, LOCK_EX | LOCK_NB) < 0;
}

typedef void sweep_fn(const struct buildstore *s, int dir_fd, const char *name);

static void sweep_work(const struct buildstore *s, int dir_fd, const char *name)
{
	cleanup_free char *lock = mem_format("making/%s.lock", name);
	struct err ignored;

	if (!strchr(name, '.') && owner_sweep(dir_fd, name, &ignored) == 0)
		(void)unlinkat(s->layers_fd, lock, 0);
}

static void sweep_blob(const struct buildstore *s, int dir_fd, const char *name)
{
	(void)s;
	(void)unlinkat(dir_fd, name, 0);
}

/* What a killed build left, whose lock is free by now. */
static void sweep_stale(const struct buildstore *s, int dir_fd, sweep_fn *sweep)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, WORK_PREFIX, strlen(WORK_PREFIX)) == 0 &&
		    strlen(entry->d_name) >= WORK_NAME_BYTES && !is_in_use(s, entry->d_name))
			sweep(s, fd, entry->d_name);
	if (dir)
		(void)closedir(dir);
}

int buildstore_open(struct buildstore *s, const struct ak *ak, struct err *e)
{
	cleanup_fd int store_fd = -1, blobs_fd = -1, all_fd = -1, making_fd = -1, dir_fd = -1;
	cleanup_free char *lock = NULL, *store = NULL;
	char unique[RECORD_ID_BYTES + 1];
	int r;

	s->ak = ak;
	if (statedir_path(ak, IMAGES_DIR, &store, e) < 0 || idmap_format_owners(s->owners, e) < 0)
		return -1;
	r = file_make_dirs(store, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", store);
	store_fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store_fd < 0)
		return err_sys(e, errno, "open '%s'", store);
	if (take_lock(store_fd, "lock", LOCK_SH, &s->lock_fd, e) < 0 ||
	    open_at(store_fd, "blobs", &blobs_fd, e) < 0 ||
	    open_at(blobs_fd, "sha256", &s->blobs_fd, e) < 0 ||
	    open_at(blobs_fd, "partial", &s->partial_fd, e) < 0 ||
	    open_at(store_fd, STEPRECORD_DIR, &s->steps_fd, e) < 0 ||
	    open_at(store_fd, "layers", &all_fd, e) < 0 ||
	    open_at(all_fd, s->owners, &s->layers_fd, e) < 0 ||
	    open_at(s->layers_fd, "making", &making_fd, e) < 0)
		return -1;
	sweep_stale(s, s->partial_fd, sweep_blob);
	sweep_stale(s, making_fd, sweep_work);
	stepcache_choose_id(unique);
	s->work = mem_format("making/" WORK_PREFIX "%.12s", unique);
	s->layers_path = mem_format("%s/layers/%s", store, s->owners);
	lock = mem_format("%s.lock", s->work);
	if (take_lock(s->layers_fd, lock, LOCK_EX, &s->work_lock_fd, e) < 0 ||
	    open_at(s->layers_fd, s->work, &dir_fd, e) < 0)
		return -1;
	if (mkdirat(dir_fd, "empty", 0755) < 0)
		return err_sys(e, errno, "prepare the build");
	s->empty = mem_format("%s/empty", s->work);
	return 0;
}

void buildstore_close(struct buildstore *s)
{
	cleanup_free char *lock = s->work ? mem_format("%s.lock", s->work) : NULL;
	cleanup_fd int making_fd = s->layers_fd < 0 ? -1
						    : openat(s->layers_fd, "making",
							     O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err ignored;

	/* what cannot be removed now, the next build or prune removes */
	if (making_fd >= 0 && s->work &&
	    owner_sweep(making_fd, path_base_name(s->work), &ignored) == 0)
		(void)unlinkat(s->layers_fd, lock, 0);
	cleanup_closep(&s->work_lock_fd);
	cleanup_closep(&s->layers_fd);
	cleanup_closep(&s->steps_fd);
	cleanup_closep(&s->blobs_fd);
	cleanup_closep(&s->partial_fd);
	cleanup_closep(&s->lock_fd);
	free(take_ptr(s->layers_path));
	free(take_ptr(s->work));
	free(take_ptr(s->empty));
}

/* A directory for a step, beneath the layers: "making/build-x/3". */
int buildstore_make_work(struct buildstore *s, char out[BUILDSTORE_WORK_MAX_BYTES], struct err *e)
{
	(void)snprintf(out, BUILDSTORE_WORK_MAX_BYTES, "%s/%u", s->work, ++s->work_count);
	if (mkdirat(s->layers_fd, out, 0700) < 0)
		return err_sys(e, errno, "prepare a step");
	return 0;
}

struct renaming {
	int dir_fd;
	const char *from, *to;
};

static int do_rename(void *context, struct err *e)
{
	const struct renaming *r = context;

	if (renameat(r->dir_fd, r->from, r->dir_fd, r->to) < 0)
		return err_sys(e, errno, "put a layer into the store");
	return 0;
}

/* The directory may belong to another id of the image. */
int buildstore_move_layer(const struct buildstore *s, const char *from, const char *to,
			  struct err *e)
{
	struct renaming r = { s->layers_fd, from, to };

	if (do_rename(&r, e) == 0)
		return 0;
	if (e->sys != EACCES && e->sys != EPERM)
		return -1;
	return owner_run(do_rename, &r, NULL, 0, e);
}

/* ---- blobs ---- */

int buildstore_begin_blob(const struct buildstore *s, char **ret_name, int *ret_fd, struct err *e)
{
	char unique[RECORD_ID_BYTES + 1];
	int fd;

	stepcache_choose_id(unique);
	*ret_name = mem_format("%s-%s", path_base_name(s->work), unique);
	fd = openat(s->partial_fd, *ret_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, errno, "begin a blob");
	*ret_fd = fd;
	return 0;
}

void buildstore_drop_blob(const struct buildstore *s, const char *name)
{
	(void)unlinkat(s->partial_fd, name, 0);
}

int buildstore_keep_blob(const struct buildstore *s, const char *name,
			 const struct layertransfer_result *r, struct err *e)
{
	const char *hex = r->digest + sizeof("sha256:") - 1;

	if (!reference_is_digest(r->digest) || !reference_is_digest(r->content))
		return err_set(e, ERR_REMOTE, "the image helper gave no digest");
	if (faccessat(s->blobs_fd, hex, F_OK, 0) == 0) {
		buildstore_drop_blob(s, name);
		return 0;
	}
	if (fchmodat(s->partial_fd, name, 0400, 0) < 0 ||
	    renameat(s->partial_fd, name, s->blobs_fd, hex) < 0)
		return err_sys(e, errno, "put a blob into the store");
	return 0;
}

/* ---- the image ---- */

int buildstore_compose(const struct buildstore *s, const struct buf *text, const char *name,
		       char ret_digest[REFERENCE_DIGEST_MAX_BYTES],
		       char ret_id[RECORD_ID_BYTES + 1], struct err *e)
{
	cleanup_fd int in_fd = memfd_create("agentkernel-image", MFD_CLOEXEC);
	cleanup_fd int out_fd = memfd_create("agentkernel-image", MFD_CLOEXEC);
	cleanup_free char *reference = name ? mem_format("reference=%s", name) : NULL;
	const char *words[] = { reference, NULL };
	const struct imagehelper_request q = { .operation = "compose",
					       .words = words,
					       .ak = s->ak,
					       .in_fd = in_fd,
					       .out_fd = out_fd };
	cleanup_free char *answer = NULL;
	size_t len = 0;
	int r;

	r = in_fd < 0 || out_fd < 0 ? -errno : file_write_all(in_fd, text->bytes, text->len);
	if (r < 0 || lseek(in_fd, 0, SEEK_SET) < 0)
		return err_sys(e, r < 0 ? -r : errno, "describe the image");
	if (text->is_cut)
		return err_set(e, ERR_LIMIT, "the image's description is too long");
	if (imagehelper_run(&q, e) < 0)
		return -1;
	if (lseek(out_fd, 0, SEEK_SET) < 0 ||
	    file_read_fd(out_fd, COMPOSE_ANSWER_MAX_BYTES, &answer, &len) < 0 ||
	    sscanf(answer, "%71s %26s", ret_digest, ret_id) != 2)
		return err_set(e, ERR_REMOTE, "the image helper gave no digest");
	return 0;
}
