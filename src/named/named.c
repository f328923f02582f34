/*
 * named - one named sandbox: its record, policy and locks; see named.h.
 *
 * Theory of operation. The lock is one byte of the file `lock`, locked with an
 * open-file-description lock: the supervisor's process inherits it, the kernel drops it with the
 * last process that has it, and it can be tested without being taken. A process that writes the
 * record or the policy also holds a flock on the directory, even while a supervisor holds the lock.
 * Taking either lock reads the record again, because it may have changed.
 *
 * The owner that the process works for is a setting in struct ak: a process carries out one call,
 * and every sandbox that it opens by name must belong to that caller.
 */
#include "named/named.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "named/nameddir.h"
#include "named/namedfile.h"
#include "policy/policyfile.h"
#include "state/statedir.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RECORD_FILE "record"
#define POLICY_FILE "policy"
#define LOCK_PAUSE_NS 2000000l

#define ROW(key, kind, member) KEYROWS_ROW(struct named, key, kind, member)
static const struct keyrows_row record_rows[] = {
	ROW("id", KEYROWS_ARRAY, id),
	ROW("created", KEYROWS_NUMBER, created_s),
	ROW("expires", KEYROWS_NUMBER, expires_s),
	ROW("image", KEYROWS_TEXT, image),
	ROW("backend", KEYROWS_TEXT, backend),
	ROW("image-pin", KEYROWS_TEXT, image_pin),
	ROW("label", KEYROWS_LIST, labels),
	ROW("layer", KEYROWS_LIST, layers),
	ROW("origin", KEYROWS_TEXT, origin),
	ROW("disk", KEYROWS_NUMBER, disk_number),
	ROW("disk-limit", KEYROWS_FLAG, has_disk_limit),
	ROW("init", KEYROWS_TEXT, init),
	ROW("owner", KEYROWS_TEXT, owner),
	ROW("public-port", KEYROWS_LIST, public_ports),
	ROW("creator", KEYROWS_TEXT, creator),
	ROW("checkpoint-every-ms", KEYROWS_NUMBER, checkpoint_every_ms),
	ROW("checkpoint-keep", KEYROWS_NUMBER, checkpoint_keep),
};
static const struct keyrows record_format = {
	.what = "sandbox",
	.version = 3,
	.rows = record_rows,
	.count = COUNT_OF(record_rows),
};
#undef ROW

void named_init(struct named *n)
{
	*n = (struct named){ .dir_fd = -1, .lock_fd = -1, .change_fd = -1 };
}

void named_done(struct named *n)
{
	keyrows_done(&record_format, n);
	cleanup_closep(&n->dir_fd);
	cleanup_closep(&n->lock_fd);
	cleanup_closep(&n->change_fd);
}

/* ---- owner and creator ---- */

void named_work_for(struct ak *ak, const char *owner, const char *creator)
{
	struct ak_view *view = &ak->view;

	assert(!owner || strlen(owner) < sizeof(view->owner));
	view->is_for_face = true;
	(void)snprintf(view->owner, sizeof(view->owner), "%s", owner ? owner : "");
	(void)snprintf(view->creator, sizeof(view->creator), "%s", creator);
}

const char *named_creator(const struct ak *ak)
{
	return ak->view.creator[0] ? ak->view.creator : NULL;
}

const char *named_owner(const struct ak *ak)
{
	return ak->view.owner[0] ? ak->view.owner : NULL;
}

bool named_is_visible(const struct ak *ak, const char *owner)
{
	if (!ak->view.is_for_face)
		return true;
	if (ak->view.owner[0])
		return owner && strcmp(owner, ak->view.owner) == 0;
	return !owner || strncmp(owner, NAMED_CALL_OWNER, strlen(NAMED_CALL_OWNER)) != 0;
}

void named_pin(struct ak *ak, const struct named *n)
{
	memcpy(ak->view.pinned_name, n->name, sizeof(ak->view.pinned_name));
	memcpy(ak->view.pinned_id, n->id, sizeof(ak->view.pinned_id));
}

static bool is_another(const struct ak *ak, const struct named *n)
{
	return strcmp(n->name, ak->view.pinned_name) == 0 && strcmp(n->id, ak->view.pinned_id) != 0;
}

void named_identify(const struct ak *ak, const char *name, struct audit_identity *ret)
{
	CLEANUP(named_done) struct named n;
	cleanup_free char *all = NULL;
	struct err ignored;

	named_init(&n);
	audit_set_identity(ret, NULL, named_owner(ak));
	/* a query must not create directories */
	if (name && statedir_path(ak, NAMED_DIR, &all, &ignored) == 0 && access(all, F_OK) == 0 &&
	    named_open(ak, name, &n, &ignored) == 0)
		audit_set_identity(ret, n.id, n.owner);
}

/* ---- names ---- */

static bool is_edge(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

int named_check_name(const char *name, struct err *e)
{
	size_t len = strlen(name);
	bool is_right = len > 0 && len <= NAMED_NAME_MAX_BYTES && is_edge(name[0]) &&
			is_edge(name[len - 1]);

	for (size_t i = 0; is_right && i < len; i++)
		is_right = is_edge(name[i]) || strchr("_.-", name[i]);
	if (!is_right)
		return err_set(
			e, ERR_INVALID,
			"invalid sandbox name '%s' (use a-z, 0-9, '_', '.' and '-', up to %u "
			"characters, with a letter or digit at both ends)",
			name, NAMED_NAME_MAX_BYTES);
	return 0;
}

int named_check_label(const char *label, struct err *e)
{
	size_t key_len = strcspn(label, "=");

	if (key_len == 0 || label[key_len] != '=' || strlen(label) > NAMED_LABEL_MAX_BYTES)
		return err_set(e, ERR_INVALID, "invalid label '%s' (use KEY=VALUE, up to %u bytes)",
			       label, NAMED_LABEL_MAX_BYTES);
	return 0;
}

void named_random_id(char out[NAMED_ID_BYTES + 1])
{
	unsigned char bytes[NAMED_ID_BYTES / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort(); /* cannot fail for so few bytes after the kernel's start */
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

bool named_is_expired(const struct named *n)
{
	return n->expires_s && (uint64_t)time(NULL) >= n->expires_s;
}

/* ---- record and policy ---- */

int named_save(const struct named *n, struct err *e)
{
	cleanup_buf struct buf bytes;

	buf_init(&bytes, NAMED_RECORD_MAX_BYTES);
	keyrows_format(&record_format, n, &bytes);
	return namedfile_replace(n->dir_fd, RECORD_FILE, &bytes, 0, e);
}

int named_save_policy(const struct named *n, const struct policy *p, struct err *e)
{
	cleanup_buf struct buf bytes;

	buf_init(&bytes, POLICYFILE_MAX_BYTES);
	policyfile_format(p, &bytes);
	return namedfile_replace(n->dir_fd, POLICY_FILE, &bytes, 0, e);
}

static int read_record(int dir_fd, const char *name, struct named *n, struct err *e)
{
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int r = file_read_at(dir_fd, RECORD_FILE, NAMED_RECORD_MAX_BYTES, &bytes, &len);

	if (r < 0)
		return err_sys(e, -r, "read the record of sandbox '%s'", name);
	if (keyrows_parse(&record_format, bytes, len, n, e) < 0)
		return err_wrap(e, "sandbox '%s'", name);
	if (strspn(n->id, "0123456789abcdef") != NAMED_ID_BYTES)
		return err_set(e, ERR_CORRUPT, "sandbox '%s': its record has no id", name);
	return 0;
}

int named_load_policy(const struct named *n, struct policy *ret, struct err *e)
{
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int r = file_read_at(n->dir_fd, POLICY_FILE, POLICYFILE_MAX_BYTES, &bytes, &len);

	if (r < 0)
		return err_sys(e, -r, "read the policy of sandbox '%s'", n->name);
	if (policyfile_parse(bytes, len, ret, e) < 0)
		return err_wrap(e, "sandbox '%s'", n->name);
	return 0;
}

/* ---- opening ---- */

/* Refuses another user's directory. */
static int check_own(int dir_fd, const char *name, struct err *e)
{
	struct stat st;

	if (fstat(dir_fd, &st) < 0)
		return err_sys(e, errno, "look at sandbox '%s'", name);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(e, ERR_DENIED, "sandbox '%s' belongs to someone else", name);
	return 0;
}

static int say_missing(const char *name, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "no sandbox named '%s' (see agentkernel list --all)",
		       name);
}

static int open_damaged_in(int all_fd, const char *name, struct named *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (named_check_name(name, e) < 0)
		return -1;
	if (all_fd >= 0)
		n.dir_fd = openat(all_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (all_fd < 0 || (n.dir_fd < 0 && errno == ENOENT))
		return say_missing(name, e);
	if (n.dir_fd < 0)
		return err_sys(e, errno, "open sandbox '%s'", name);
	(void)snprintf(n.name, sizeof(n.name), "%s", name);
	n.is_damaged = true; /* until its record is read */
	if (check_own(n.dir_fd, name, e) < 0)
		return -1;
	*ret = n;
	named_init(&n);
	return 0;
}

int named_open_damaged(const struct ak *ak, const char *name, struct named *ret, struct err *e)
{
	cleanup_fd int all_fd = -1;

	if (nameddir_find(ak, &all_fd, e) < 0)
		return -1;
	return open_damaged_in(all_fd, name, ret, e);
}

/* Is the directory still there under its name? Also true if this cannot be determined. */
bool named_is_there(const struct named *n)
{
	char path[sizeof("../") + NAMED_NAME_MAX_BYTES];
	struct stat own, named;

	(void)snprintf(path, sizeof(path), "../%s", n->name);
	if (fstat(n->dir_fd, &own) < 0)
		return true;
	if (own.st_nlink == 0)
		return false;
	if (fstatat(n->dir_fd, path, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno != ENOENT;
	return named.st_dev == own.st_dev && named.st_ino == own.st_ino;
}

static int say_gone(const struct named *n, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "no sandbox '%s': it was removed meanwhile", n->name);
}

/* Is the record unreadable? Then its owner is unknown, so callers with a key do not see it. */
static bool is_owner_lost(const struct ak *ak, const struct err *e)
{
	return named_owner(ak) && (e->code == ERR_CORRUPT || e->code == ERR_UNSUPPORTED ||
				   e->code == ERR_DENIED || e->sys == ENOENT || e->sys == EFBIG);
}

int named_open(const struct ak *ak, const char *name, struct named *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (named_open_any(ak, name, &n, e) < 0)
		return is_owner_lost(ak, e) ? say_missing(name, e) : -1;
	if (!named_is_visible(ak, n.owner) || is_another(ak, &n))
		return say_missing(name, e);
	*ret = n;
	named_init(&n);
	return 0;
}

int named_open_any(const struct ak *ak, const char *name, struct named *ret, struct err *e)
{
	cleanup_fd int all_fd = -1;

	if (nameddir_find(ak, &all_fd, e) < 0)
		return -1;
	return named_open_any_in(all_fd, name, ret, e);
}

int named_open_any_in(int all_fd, const char *name, struct named *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (open_damaged_in(all_fd, name, &n, e) < 0)
		return -1;
	if (read_record(n.dir_fd, name, &n, e) < 0) {
		size_t len = strlen(e->msg);

		if (!named_is_there(&n))
			return say_gone(&n, e);
		if (e->sys != 0 && e->sys != ENOENT && e->sys != EFBIG)
			return -1; /* not the record's fault: do not suggest removing it */
		(void)snprintf(e->msg + len, sizeof(e->msg) - len,
			       " ('agentkernel remove -f %s' removes it)", name);
		return -1;
	}
	n.is_damaged = false;
	*ret = n;
	named_init(&n);
	return 0;
}

int named_read_again(struct named *n, struct err *e)
{
	struct named fresh;

	named_init(&fresh);
	if (read_record(n->dir_fd, n->name, &fresh, e) < 0) {
		named_done(&fresh);
		return named_is_there(n) ? -1 : say_gone(n, e);
	}
	memcpy(fresh.name, n->name, sizeof(fresh.name));
	fresh.dir_fd = n->dir_fd;
	fresh.lock_fd = n->lock_fd;
	fresh.change_fd = n->change_fd;
	fresh.has_lock = n->has_lock;
	keyrows_done(&record_format, n);
	*n = fresh;
	return 0;
}

/* ---- locks ---- */

/* Uses a new descriptor: the supervisor inherits dir_fd and would inherit its flock too. */
int named_begin_change(struct named *n, struct err *e)
{
	int fd = openat(n->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	assert(n->change_fd < 0);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		r = err_sys(e, errno, "wait for others that change sandbox '%s'", n->name);
	else if (!named_is_there(n))
		r = say_gone(n, e);
	n->change_fd = fd;
	if (r == 0 && !n->is_damaged)
		r = named_read_again(n, e);
	if (r < 0)
		named_end_change(n);
	return r;
}

void named_end_change(struct named *n)
{
	cleanup_closep(&n->change_fd);
}

static int open_lock(struct named *n, struct err *e)
{
	if (n->lock_fd < 0)
		n->lock_fd = openat(n->dir_fd, NAMED_LOCK_FILE,
				    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (n->lock_fd < 0 && errno == ENOENT)
		return say_gone(n, e);
	if (n->lock_fd < 0)
		return err_sys(e, errno, "open the lock of sandbox '%s'", n->name);
	return 0;
}

static bool try_lock(struct named *n)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };

	n->has_lock = fcntl(n->lock_fd, F_OFD_SETLK, &lock) == 0;
	return n->has_lock;
}

int named_lock_within(struct named *n, unsigned wait_ms, struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	uint64_t end_ms = clock_now_ms() + wait_ms;

	if (open_lock(n, e) < 0)
		return -1;
	while (!try_lock(n)) {
		if (clock_now_ms() >= end_ms)
			return err_set(e, ERR_BUSY,
				       "sandbox '%s' is running, or another command is changing it",
				       n->name);
		(void)nanosleep(&pause, NULL);
	}
	/* fail if it was removed while we waited */
	if (named_is_there(n) ? !n->is_damaged && named_read_again(n, e) < 0 : say_gone(n, e) < 0) {
		named_unlock(n);
		return -1;
	}
	return 0;
}

int named_lock(struct named *n, struct err *e)
{
	return named_lock_within(n, 0, e);
}

int named_lock_new(struct named *n, struct err *e)
{
	if (open_lock(n, e) < 0)
		return -1;
	return try_lock(n) ? 0 : err_set(e, ERR_BUSY, "a new sandbox is locked by someone else");
}

void named_unlock(struct named *n)
{
	cleanup_closep(&n->lock_fd);
	n->has_lock = false;
}

/* Without the lock: whoever holds it has another open file, so it is found by this one too. */
static int open_to_look(const struct named *n)
{
	return openat(n->dir_fd, NAMED_LOCK_FILE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
}

static bool is_locked_by_another(int lock_fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };

	return fcntl(lock_fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

bool named_is_locked(const struct named *n)
{
	cleanup_fd int fd = open_to_look(n);

	return fd < 0 ? !file_is_absence(-errno) : is_locked_by_another(fd);
}

void named_note_build(const struct named *n)
{
	const char *build = buildid_get();

	(void)!pwrite(n->lock_fd, build, strlen(build) + 1, 0);
}

bool named_is_locked_by(const struct named *n, char ret_build[BUILDID_MAX_BYTES])
{
	cleanup_fd int fd = open_to_look(n);
	ssize_t len;

	ret_build[0] = '\0';
	if (fd < 0)
		return !file_is_absence(-errno);
	if (!is_locked_by_another(fd))
		return false;
	len = pread(fd, ret_build, BUILDID_MAX_BYTES - 1, 0);
	ret_build[len > 0 ? len : 0] = '\0';
	return true;
}
