/*
 * store - the image store; see store.h.
 *
 * Theory of operation. Every step of adding an image ends in one rename: a blob from partial/, a
 * layer from making/, a record and a name from a temporary link or file beside them. Nothing is
 * synced meanwhile, because that would take longer than the pull; instead a new record has a marker
 * with the boot id, removed by store_sync_later() once everything is on disk. After a machine crash
 * the marker of another boot means: check the blobs, unpack again.
 */
#include "image/store.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "image/digest.h"
#include "image/layerworker.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOCK_SUFFIX ".lock"
#define REPAIR_LOCK "repair.lock"
#define MAKING "making"
#define HASH_OFFSET (sizeof("sha256:") - 1)
#define OPEN_ATTEMPTS_MAX 16
#define LAYER_LOCK_MAX_BYTES (RECORD_ID_BYTES + sizeof(LOCK_SUFFIX))

void store_init(struct store *s)
{
	*s = (struct store){ -1, -1, -1, -1, -1, -1, -1, -1, -1, "" };
}

void store_close(struct store *s)
{
	int *fds[] = { &s->dir_fd,    &s->blobs_fd,   &s->partial_fd, &s->layers_fd,
		       &s->making_fd, &s->records_fd, &s->names_fd,   &s->lock_fd };

	for (size_t i = 0; i < COUNT_OF(fds); i++)
		cleanup_closep(fds[i]);
}

/*
 * The owner of a directory could read and change our files there, and a root caller's layers
 * contain set-id files of the host's root, so we must own it.
 */
static int check_own(int fd, const char *name, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", name);
	if (st.st_uid != geteuid())
		return err_set(e, ERR_DENIED,
			       "'%s', of the image store, belongs to another user (%u)", name,
			       (unsigned)st.st_uid);
	if ((st.st_mode & 077) && fchmod(fd, 0700) < 0)
		return err_sys(e, errno, "shut '%s' for others", name);
	return 0;
}

static int open_dir(int parent_fd, const char *name, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = -1;

	if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s' in the image store", name);
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, errno, "open '%s' in the image store", name);
	if (check_own(fd, name, e) < 0)
		return -1;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* layers/OWNERS/ is a directory that images are mounted from, so only root inside may enter it. */
static int open_dirs(struct store *s, struct err *e)
{
	cleanup_fd int blobs_fd = -1, layers_fd = -1;

	if (open_dir(s->dir_fd, "blobs", &blobs_fd, e) < 0 ||
	    open_dir(blobs_fd, "sha256", &s->blobs_fd, e) < 0 ||
	    open_dir(blobs_fd, "partial", &s->partial_fd, e) < 0)
		return -1;
	if (open_dir(s->dir_fd, "layers", &layers_fd, e) < 0 ||
	    open_dir(layers_fd, s->owners, &s->layers_fd, e) < 0 ||
	    open_dir(s->layers_fd, MAKING, &s->making_fd, e) < 0)
		return -1;
	if (open_dir(s->dir_fd, "records", &s->records_fd, e) < 0)
		return -1;
	return open_dir(s->dir_fd, "names", &s->names_fd, e);
}

static int take_lock(int fd, int how, struct err *e)
{
	if (fd >= 0 && flock(fd, how) == 0)
		return 0;
	if (fd >= 0 && errno == EWOULDBLOCK)
		return err_set(e, ERR_BUSY, "another process is using the image store");
	return err_sys(e, errno, "lock the image store");
}

int store_open(const char *path, const char *owners, int userns_fd, enum store_lock lock,
	       enum store_wait wait, struct store *ret, struct err *e)
{
	int how = wait == STORE_NO_WAIT ? LOCK_NB : 0;
	CLEANUP(store_close) struct store s;
	int r;

	store_init(&s);
	s.userns_fd = userns_fd;
	(void)snprintf(s.owners, sizeof(s.owners), "%s", owners);
	r = file_make_dirs(path, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", path);
	s.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s.dir_fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	if (check_own(s.dir_fd, path, e) < 0)
		return -1;
	if (lock == STORE_ALONE && take_lock(s.dir_fd, LOCK_EX | how, e) < 0)
		return -1;
	s.lock_fd = openat(s.dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (take_lock(s.lock_fd, (lock == STORE_SHARED ? LOCK_SH : LOCK_EX) | how, e) < 0)
		return -1;
	if (open_dirs(&s, e) < 0)
		return -1;
	*ret = s;
	store_init(&s);
	return 0;
}

/* Locks a file that others may remove while we wait: then it is opened again. */
static int open_locked(int dir_fd, const char *name, int lock, int *ret_fd, struct err *e)
{
	for (int attempt = 0; attempt < OPEN_ATTEMPTS_MAX; attempt++) {
		cleanup_fd int fd =
			openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		struct stat st;

		if (fd >= 0 && flock(fd, lock) < 0) {
			if (errno == EWOULDBLOCK)
				return err_set(e, ERR_BUSY, "another process is at it");
			return err_sys(e, errno, "lock '%s' in the image store", name);
		}
		if (fd < 0 || fstat(fd, &st) < 0)
			return err_sys(e, errno, "open '%s' in the image store", name);
		if (st.st_nlink > 0) {
			*ret_fd = take_fd(&fd);
			return 0;
		}
	}
	return err_set(e, ERR_BUSY, "'%s' in the image store is taken again and again", name);
}

/* Random, not the process id: two containers may share a store. */
void store_choose_unique(char out[STORE_UNIQUE_BYTES])
{
	uint64_t number = 0;
	ssize_t n = getrandom(&number, sizeof(number), 0);

	assert(n == (ssize_t)sizeof(number)); /* such small reads are never short */
	(void)snprintf(out, STORE_UNIQUE_BYTES, "%016" PRIx64, number);
}

/* ---- blobs ---- */

bool store_has_blob(const struct store *s, const char *digest)
{
	return faccessat(s->blobs_fd, digest + HASH_OFFSET, R_OK, 0) == 0;
}

int store_open_blob(const struct store *s, const char *digest, int *ret_fd, struct err *e)
{
	int fd = openat(s->blobs_fd, digest + HASH_OFFSET, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "the store has no blob %s", digest);
	if (fd < 0)
		return err_sys(e, errno, "open blob %s", digest);
	*ret_fd = fd;
	return 0;
}

int store_read_blob(const struct store *s, const char *digest, size_t max_bytes, char **ret_text,
		    size_t *ret_len, struct err *e)
{
	cleanup_fd int fd = -1;
	int r;

	if (store_open_blob(s, digest, &fd, e) < 0)
		return -1;
	r = file_read_fd(fd, max_bytes, ret_text, ret_len);
	if (r < 0)
		return err_sys(e, -r, "read blob %s", digest);
	return 0;
}

int store_begin_blob(const struct store *s, const char *digest, enum store_wait wait, int *ret_fd,
		     struct err *e)
{
	int how = LOCK_EX | (wait == STORE_NO_WAIT ? LOCK_NB : 0);
	cleanup_fd int fd = -1;

	if (open_locked(s->partial_fd, digest + HASH_OFFSET, how, &fd, e) < 0)
		return -1;
	if (store_has_blob(s, digest)) {
		(void)unlinkat(s->partial_fd, digest + HASH_OFFSET, 0); /* ours, just created */
		*ret_fd = -1;
		return 0;
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

void store_leave_blob(const struct store *s, const char *digest, int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_size == 0)
		(void)unlinkat(s->partial_fd, digest + HASH_OFFSET, 0); /* we hold its lock */
	(void)close(fd);
}

int store_finish_blob(const struct store *s, const char *digest, int fd, struct err *e)
{
	const char *name = digest + HASH_OFFSET;
	int r = 0;

	/* in this order: a partial blob must stay writable for whoever resumes it */
	if (renameat(s->partial_fd, name, s->blobs_fd, name) < 0 || fchmod(fd, 0400) < 0)
		r = err_sys(e, errno, "put blob %s into the store", digest);
	(void)close(fd);
	return r;
}

int store_add_blob(const struct store *s, const void *bytes, size_t len,
		   char ret_digest[REFERENCE_DIGEST_MAX_BYTES], struct err *e)
{
	cleanup_fd int fd = -1;
	int r;

	digest_of(bytes, len, ret_digest);
	if (store_has_blob(s, ret_digest))
		return 0;
	if (store_begin_blob(s, ret_digest, STORE_WAIT, &fd, e) < 0)
		return -1;
	if (fd < 0)
		return 0;
	r = ftruncate(fd, 0) < 0 ? -errno : file_write_all(fd, bytes, len);
	if (r < 0)
		return err_sys(e, -r, "write blob %s", ret_digest);
	return store_finish_blob(s, ret_digest, take_fd(&fd), e);
}

int store_check_blob(const struct store *s, const char *digest, struct err *e)
{
	char found[REFERENCE_DIGEST_MAX_BYTES];
	cleanup_fd int fd = -1;
	int r;

	if (store_open_blob(s, digest, &fd, e) < 0)
		return -1;
	r = digest_of_file(fd, found);
	if (r < 0)
		return err_sys(e, -r, "read blob %s", digest);
	if (strcmp(found, digest) == 0)
		return 0;
	(void)unlinkat(s->blobs_fd, digest + HASH_OFFSET, 0); /* it is useless */
	return err_set(e, ERR_CORRUPT, "blob %s is damaged", digest);
}

/* ---- layers ---- */

static unsigned hex_value(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

/* Encodes the first 130 bits of a digest, five per letter. */
static void format_id(const char *digest, char out[RECORD_ID_BYTES + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	const char *hex = digest + HASH_OFFSET;

	for (unsigned i = 0; i < RECORD_ID_BYTES; i++) {
		unsigned value = 0;

		for (unsigned bit = 5 * i; bit < 5 * i + 5; bit++)
			value = value << 1 | (hex_value(hex[bit / 4]) >> (3 - bit % 4) & 1);
		out[i] = letters[value];
	}
	out[RECORD_ID_BYTES] = '\0';
}

/*
 * A layer's name depends on all layers below, because its implied directories take their attributes
 * from there (as in OCI's "chain id"), and on its blob: so a worker cannot pass off what it
 * unpacked from one blob as another's layer.
 */
void store_name_layers(const struct manifest *m, const char (*diff_ids)[REFERENCE_DIGEST_MAX_BYTES],
		       char (*ret_ids)[RECORD_ID_BYTES + 1])
{
	char chain[REFERENCE_DIGEST_MAX_BYTES] = "";

	for (unsigned i = 0; i < m->layer_count; i++) {
		cleanup_free char *text =
			mem_format("%s %s %s", chain, diff_ids[i], m->layers[i].digest);

		digest_of(text, strlen(text), chain);
		format_id(chain, ret_ids[i]);
	}
}

bool store_has_layer(const struct store *s, const char *id)
{
	return faccessat(s->layers_fd, id, F_OK, 0) == 0;
}

int store_open_layer(const struct store *s, const char *id, int *ret_fd, struct err *e)
{
	int fd = openat(s->layers_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_sys(e, errno, "open layer %s", id);
	*ret_fd = fd;
	return 0;
}

/* In the user namespace that owns the files. */
static int sweep(const struct store *s, int dir_fd, const char *name, struct err *e)
{
	const char *words[] = { name, NULL };
	const struct layerworker_options o = {
		.operation = "sweep",
		.words = words,
		.dir_fd = dir_fd,
		.archive_fd = -1,
		.userns_fd = s->userns_fd,
		.lock_fds = { s->lock_fd, -1 },
	};

	if (layerworker_run(&o, e) < 0)
		return err_wrap(e, "remove layer %s", name);
	return 0;
}

int store_sweep(const struct store *s, const char *name, struct err *e)
{
	return sweep(s, s->making_fd, name, e);
}

/* Best effort: files of ids that this user no longer has cannot be removed. */
void store_sweep_owners(const struct store *s, const char *owners)
{
	cleanup_fd int fd = openat(s->dir_fd, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err ignored;

	if (fd >= 0)
		(void)!sweep(s, fd, owners, &ignored);
}

static int make_empty(const struct store *s, const char *id, struct err *e)
{
	if (mkdirat(s->making_fd, id, 0755) == 0)
		return 0;
	if (errno != EEXIST)
		return err_sys(e, errno, "create layer %s", id);
	if (sweep(s, s->making_fd, id, e) < 0)
		return -1;
	if (mkdirat(s->making_fd, id, 0755) < 0)
		return err_sys(e, errno, "create layer %s", id);
	return 0;
}

int store_begin_layer(const struct store *s, const char *id, int *ret_dir_fd, int *ret_lock_fd,
		      struct err *e)
{
	cleanup_fd int lock_fd = -1, dir_fd = -1;
	char name[LAYER_LOCK_MAX_BYTES];

	(void)snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, id);
	if (open_locked(s->making_fd, name, LOCK_EX | LOCK_NB, &lock_fd, e) < 0)
		return -1;
	if (store_has_layer(s, id)) {
		(void)unlinkat(s->making_fd, name, 0);
		*ret_dir_fd = *ret_lock_fd = -1;
		return 0;
	}
	if (make_empty(s, id, e) < 0)
		return -1;
	dir_fd = openat(s->making_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir_fd < 0)
		return err_sys(e, errno, "open layer %s", id);
	*ret_dir_fd = take_fd(&dir_fd);
	*ret_lock_fd = take_fd(&lock_fd);
	return 0;
}

/*
 * Renames between making/ and the layers. A directory may belong to another id of the image, and
 * only its owner may move it, or the root of their namespace.
 */
static int move_layer(const struct store *s, const char *from, const char *to, struct err *e)
{
	const char *words[] = { from, to, NULL };
	const struct layerworker_options o = {
		.operation = "move",
		.words = words,
		.dir_fd = s->layers_fd,
		.archive_fd = -1,
		.userns_fd = s->userns_fd,
		.lock_fds = { s->lock_fd, -1 },
	};

	if (renameat(s->layers_fd, from, s->layers_fd, to) == 0)
		return 0;
	if (errno != EACCES && errno != EPERM)
		return err_sys(e, errno, "move '%s' to '%s'", from, to);
	return layerworker_run(&o, e);
}

int store_finish_layer(const struct store *s, const char *id, struct err *e)
{
	cleanup_free char *unfinished = mem_format(MAKING "/%s", id);
	char name[LAYER_LOCK_MAX_BYTES];

	(void)snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, id);
	if (move_layer(s, unfinished, id, e) < 0)
		return err_wrap(e, "put layer %s into the store", id);
	(void)unlinkat(s->making_fd, name, 0); /* waiting processes check again */
	return 0;
}

void store_abandon_layer(const struct store *s, const char *id)
{
	char name[LAYER_LOCK_MAX_BYTES];
	struct err ignored;

	(void)snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, id);
	/* if it cannot be removed now, the next process that makes this layer, or prune, does */
	if (sweep(s, s->making_fd, id, &ignored) == 0)
		(void)unlinkat(s->making_fd, name, 0);
}

int store_remove_layer(const struct store *s, const char *id, struct err *e)
{
	cleanup_free char *unfinished = mem_format(MAKING "/%s", id);

	/* rename it first: a partial layer must never have its final name */
	if (move_layer(s, id, unfinished, e) < 0)
		return e->sys == ENOENT ? 0 : err_wrap(e, "remove layer %s", id);
	return sweep(s, s->making_fd, id, e);
}

/* ---- records and names ---- */

static void name_record(const struct store *s, struct record *r)
{
	cleanup_free char *text = mem_format("%s %s", r->digest, s->owners);
	char digest[REFERENCE_DIGEST_MAX_BYTES];

	digest_of(text, strlen(text), digest);
	format_id(digest, r->id);
}

static int write_file(int dir_fd, const char *name, const void *bytes, size_t len, struct err *e)
{
	char unique[STORE_UNIQUE_BYTES];
	cleanup_free char *temporary = NULL;
	cleanup_fd int fd = -1;
	int r;

	store_choose_unique(unique);
	temporary = mem_format(".%s.%s", name, unique);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : file_write_all(fd, bytes, len);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir_fd, temporary, 0);
		return err_sys(e, -r, "write an image's record");
	}
	return 0;
}

static int mark_unsynced(const struct store *s, const char *id, struct err *e)
{
	cleanup_free char *name = mem_format("%s" RECORD_UNSYNCED, id);
	char boot[RECORD_BOOT_MAX_BYTES];
	int r = record_current_boot(boot);

	if (r < 0)
		return err_sys(e, -r, "read the name of this boot");
	return write_file(s->records_fd, name, boot, strlen(boot), e);
}

int store_put_record(const struct store *s, struct record *r, struct err *e)
{
	CLEANUP(record_done) struct record there = { 0 };
	cleanup_fd int lock_fd = -1;
	cleanup_buf struct buf bytes;
	struct err why = { 0 };

	buf_init(&bytes, RECORD_MAX_BYTES);
	name_record(s, r);
	(void)snprintf(r->owners, sizeof(r->owners), "%s", s->owners);
	if (mark_unsynced(s, r->id, e) < 0)
		return -1;
	/* users hold the lock of the existing file, so it is kept unless it is damaged */
	if (record_open(s->records_fd, r->id, &there, &lock_fd, &why) == 0)
		return 0;
	if (why.code != ERR_NOT_FOUND && why.code != ERR_CORRUPT) {
		*e = why;
		return -1;
	}
	record_format(r, &bytes);
	if (bytes.is_cut)
		return err_set(e, ERR_LIMIT, "the image's config is too large");
	return write_file(s->records_fd, r->id, bytes.bytes, bytes.len, e);
}

int store_set_name(const struct store *s, const struct reference *ref, const char *id,
		   struct err *e)
{
	char file[REFERENCE_MAX_BYTES + 1];
	cleanup_free char *target = mem_format("../records/%s", id);
	cleanup_free char *temporary = NULL;
	char unique[STORE_UNIQUE_BYTES];

	reference_format_file(ref, file);
	store_choose_unique(unique);
	temporary = mem_format(".new.%s", unique);
	if (symlinkat(target, s->names_fd, temporary) < 0 ||
	    renameat(s->names_fd, temporary, s->names_fd, file) < 0)
		return err_sys(e, errno, "give the image its name");
	return 0;
}

int store_get_record(const struct store *s, const struct reference *ref, struct record *ret,
		     int *ret_lock_fd, struct err *e)
{
	char file[REFERENCE_MAX_BYTES + 1], name[REFERENCE_MAX_BYTES + 1];

	reference_format_file(ref, file);
	if (record_open(s->names_fd, file, ret, ret_lock_fd, e) == 0)
		return 0;
	if (e->code != ERR_NOT_FOUND)
		return -1;
	reference_format_short(ref, name);
	return err_set(e, ERR_NOT_FOUND,
		       "no image '%s' in the store ('agentkernel image list' shows them)", name);
}

int store_remove_name(const struct store *s, const struct reference *ref, struct err *e)
{
	char file[REFERENCE_MAX_BYTES + 1], name[REFERENCE_MAX_BYTES + 1];

	reference_format_file(ref, file);
	if (unlinkat(s->names_fd, file, 0) == 0)
		return 0;
	reference_format_short(ref, name);
	if (errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "no image '%s' in the store", name);
	return err_sys(e, errno, "remove the name '%s'", name);
}

/* ---- after a machine crash ---- */

int store_lock_repair(const struct store *s, int *ret_fd, struct err *e)
{
	return open_locked(s->records_fd, REPAIR_LOCK, LOCK_EX, ret_fd, e);
}

static bool has_layer(const struct store *s, const char *record_id, const char *layer_id)
{
	CLEANUP(record_done) struct record r = { 0 };
	cleanup_fd int lock_fd = -1;
	struct err ignored;
	bool has = false;

	if (!record_is_settled(s->records_fd, record_id) ||
	    record_open(s->records_fd, record_id, &r, &lock_fd, &ignored) < 0)
		return false;
	for (unsigned i = 0; i < r.layer_count && !has; i++)
		has = strcmp(r.layers[i], layer_id) == 0;
	return has && strcmp(r.owners, s->owners) == 0;
}

bool store_is_vouched(const struct store *s, const char *layer_id)
{
	int fd = openat(s->records_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool is_vouched = false;

	while (dir && !is_vouched && (entry = readdir(dir)))
		is_vouched = strlen(entry->d_name) == RECORD_ID_BYTES &&
			     has_layer(s, entry->d_name, layer_id);
	if (dir)
		(void)closedir(dir);
	return is_vouched;
}

/* ---- syncing to disk ---- */

#define UNSYNCED_MAX 256u

/* Lists the current markers: their files were written before the sync that follows. */
static unsigned list_marks(int records_fd, char *ret_names[UNSYNCED_MAX])
{
	cleanup_fd int fd = openat(records_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	unsigned count = 0;

	if (!dir)
		return 0;
	(void)take_fd(&fd);
	while (count < UNSYNCED_MAX && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);

		if (len == RECORD_ID_BYTES + sizeof(RECORD_UNSYNCED) - 1 &&
		    strcmp(entry->d_name + RECORD_ID_BYTES, RECORD_UNSYNCED) == 0)
			ret_names[count++] = mem_dup(entry->d_name);
	}
	(void)closedir(dir);
	return count;
}

static _Noreturn void sync_and_exit(const struct store *s)
{
	char *names[UNSYNCED_MAX];
	char boot[RECORD_BOOT_MAX_BYTES], written[RECORD_BOOT_MAX_BYTES];
	unsigned count = list_marks(s->records_fd, names);

	if (syncfs(s->dir_fd) < 0 || record_current_boot(boot) < 0)
		_exit(1);
	for (unsigned i = 0; i < count; i++)
		if (file_read_line(s->records_fd, names[i], written, sizeof(written)) == 0 &&
		    strcmp(boot, written) == 0)
			(void)unlinkat(s->records_fd, names[i], 0);
	_exit(0);
}

void store_sync_later(const struct store *s)
{
	pid_t pid = fork();

	if (pid < 0)
		return; /* the markers stay: the images are checked after the next boot */
	if (pid > 0) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
		return;
	}
	(void)setsid();
	(void)setpriority(PRIO_PROCESS, 0, 19);
	if (fork() != 0)
		_exit(0);
	/* do not keep our streams and the store's lock open */
	for (int fd = 0; fd <= 3; fd++)
		(void)close(fd);
	(void)close(s->lock_fd);
	sync_and_exit(s);
}
