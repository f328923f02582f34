/*
 * named - the files of a named sandbox; see named.h.
 *
 * Theory of operation. Files are written under another name and renamed, so a reader sees the old
 * or the new one (on a full disk, rows are appended to the run file instead). The lock is one byte
 * of the file `lock`, locked with an open-file-description lock: the supervisor's process inherits
 * it, the kernel drops it with the last process that has it, and it can be tested without being
 * taken. A process that writes the record or the policy also holds a flock on the directory, even
 * while a supervisor holds the lock. Taking either lock reads the record again, because it may have
 * changed.
 *
 * The owner that the process works for is a setting in struct ak: a process carries out one call,
 * and every sandbox that it opens by name must belong to that caller.
 *
 * Nothing is synced: after a power cut the last seconds may be lost; a killed process loses
 * nothing.
 */
#include "named/named.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "named/control.h"
#include "state/lockholder.h"
#include "tree/owner.h"
#include "state/statedir.h"
#include "policy/policyfile.h"
#include "host/disk.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define MAKING_DIR ".making"
#define TRASH_DIR ".trash"
#define RECORD_FILE "record"
#define POLICY_FILE "policy"
#define RUN_FILE "run"
#define LOCK_FILE "lock"
#define RULES_FILE "rules" /* the network rules before the first change */
#define NOTICES_FILE "notices"
#define LOCK_PAUSE_NS 2000000l
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#endif

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

#define ROW(key, kind, member) KEYROWS_ROW(struct named_run, key, kind, member)
static const struct keyrows_row run_rows[] = {
	ROW("state", KEYROWS_NUMBER, state),
	ROW("supervisor", KEYROWS_NUMBER, supervisor_pid),
	ROW("init", KEYROWS_NUMBER, init_pid),
	ROW("started", KEYROWS_NUMBER, started_s),
	ROW("ended", KEYROWS_NUMBER, ended_s),
	ROW("host-gid", KEYROWS_ID, host_gid),
	ROW("switches-ids", KEYROWS_ID, switches_ids),
	ROW("reason", KEYROWS_TEXT, reason),
	ROW("cgroup", KEYROWS_LIST, cgroups),
	ROW("checkpoint-trouble", KEYROWS_TEXT, checkpoint_trouble),
};
static const struct keyrows run_format = {
	.what = "running sandbox",
	.version = 2,
	.rows = run_rows,
	.count = COUNT_OF(run_rows),
};
#undef ROW

static const char *const state_word[] = {
	[NAMED_CREATED] = "created",
	[NAMED_RUNNING] = "running",
	[NAMED_PAUSED] = "paused",
	[NAMED_STOPPED] = "stopped",
};

const char *named_state_word(enum named_state state)
{
	return state_word[state];
}

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

void named_run_done(struct named_run *r)
{
	keyrows_done(&run_format, r);
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

/* ---- files ---- */

/*
 * Exchanges the file with its successor, for files that need not survive a power cut: a rename over
 * an existing file makes ext4 flush the new one at once, and the caller would wait for that.
 */
static int swap_files(int dir_fd, const char *temporary, const char *name)
{
	if (syscall(SYS_renameat2, dir_fd, temporary, dir_fd, name, RENAME_EXCHANGE) < 0)
		return renameat(dir_fd, temporary, dir_fd, name) < 0 ? -errno : 0;
	(void)unlinkat(dir_fd, temporary, 0);
	return 0;
}

static bool is_full(int sys)
{
	return sys == ENOSPC || sys == EDQUOT;
}

enum replace_flags {
	REPLACE_BY_SWAP = 1 << 0,
};

/* Writes the file completely or not at all, also on a full disk. */
static int replace_file(int dir_fd, const char *name, const struct buf *bytes, unsigned flags,
			struct err *e)
{
	cleanup_free char *temporary = mem_format(".%s.new", name);
	cleanup_fd int fd = -1;
	int r;

	if (bytes->is_cut)
		return err_set(e, ERR_LIMIT, "'%s' is too long", name);
	(void)unlinkat(dir_fd, temporary, 0); /* left by a killed process; we hold the lock */
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, errno, "write '%s'", name);
	r = file_write_all(fd, bytes->bytes, bytes->len);
	if (r == 0 && flags & REPLACE_BY_SWAP)
		r = swap_files(dir_fd, temporary, name);
	else if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir_fd, temporary, 0);
		return err_sys(e, -r, "write '%s'", name);
	}
	return 0;
}

int named_save(const struct named *n, struct err *e)
{
	cleanup_buf struct buf bytes;

	buf_init(&bytes, NAMED_RECORD_MAX_BYTES);
	keyrows_format(&record_format, n, &bytes);
	return replace_file(n->dir_fd, RECORD_FILE, &bytes, 0, e);
}

int named_save_policy(const struct named *n, const struct policy *p, struct err *e)
{
	cleanup_buf struct buf bytes;

	buf_init(&bytes, POLICYFILE_MAX_BYTES);
	policyfile_format(p, &bytes);
	return replace_file(n->dir_fd, POLICY_FILE, &bytes, 0, e);
}

/* Appends rows, which override earlier ones. Undoes a partial write, which would spoil the file. */
static int append_rows(const struct named *n, const char *rows, size_t len, struct err *e)
{
	cleanup_fd int fd = openat(n->dir_fd, RUN_FILE, O_WRONLY | O_APPEND | O_CLOEXEC);
	struct stat before;
	int failed;

	if (fd < 0 || fstat(fd, &before) < 0)
		return err_sys(e, errno, "write '%s'", RUN_FILE);
	failed = file_write_all(fd, rows, len);
	if (failed < 0) {
		(void)!ftruncate(fd, before.st_size);
		return err_sys(e, -failed, "write '%s'", RUN_FILE);
	}
	return 0;
}

/* Saves the end on a full disk: a few more bytes fit into the file's last block. */
static int add_end(const struct named *n, const struct named_run *r, struct err *e)
{
	static const char no_processes[] = "supervisor=0\0init=0"; /* plus the final NUL */
	cleanup_buf struct buf rows;

	buf_init(&rows, NAMED_RECORD_MAX_BYTES);
	buf_addf(&rows, "state=%" PRIu64, r->state);
	buf_add(&rows, "", 1);
	buf_addf(&rows, "ended=%" PRIu64, r->ended_s);
	buf_add(&rows, "", 1);
	buf_add(&rows, no_processes, sizeof(no_processes));
	buf_addf(&rows, "%s%s", r->reason ? "reason=" : "", r->reason ? r->reason : "");
	buf_add(&rows, "", r->reason ? 1 : 0);
	return append_rows(n, rows.bytes, rows.len, e);
}

/*
 * The same for a start, with every member, because an omitted row would keep its old value. A
 * stopped sandbox has no cgroups in its file, so the new ones are simply appended.
 */
static int add_start(const struct named *n, const struct named_run *r, struct err *e)
{
	cleanup_buf struct buf rows;
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{ "state", r->state },
		{ "supervisor", r->supervisor_pid },
		{ "init", r->init_pid },
		{ "started", r->started_s },
		{ "ended", r->ended_s },
		{ "host-gid", r->host_gid },
		{ "switches-ids", r->switches_ids },
	};

	buf_init(&rows, NAMED_RECORD_MAX_BYTES);
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		keyrows_put_number(&rows, numbers[i].key, numbers[i].value);
	keyrows_put(&rows, "reason", r->reason ? r->reason : "");
	keyrows_put(&rows, "checkpoint-trouble",
		    r->checkpoint_trouble ? r->checkpoint_trouble : "");
	for (char **path = r->cgroups; path && *path; path++)
		keyrows_put(&rows, "cgroup", *path);
	return append_rows(n, rows.bytes, rows.len, e);
}

int named_save_run(const struct named *n, const struct named_run *r, struct err *e)
{
	cleanup_buf struct buf bytes;
	struct err full;

	buf_init(&bytes, NAMED_RECORD_MAX_BYTES);
	keyrows_format(&run_format, r, &bytes);
	if (replace_file(n->dir_fd, RUN_FILE, &bytes, REPLACE_BY_SWAP, e) == 0)
		return 0;
	full = *e;
	if (!is_full(e->sys))
		return -1;
	if ((r->state == NAMED_STOPPED ? add_end(n, r, e) : add_start(n, r, e)) == 0)
		return 0;
	*e = full; /* a sandbox that was never started has no file to append to */
	return -1;
}

void named_note_build(const struct named *n)
{
	const char *build = buildid_get();

	(void)!pwrite(n->lock_fd, build, strlen(build) + 1, 0);
}

void named_read_build(const struct named *n, char out[BUILDID_MAX_BYTES])
{
	cleanup_fd int fd = openat(n->dir_fd, LOCK_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t len = fd < 0 ? -1 : pread(fd, out, BUILDID_MAX_BYTES - 1, 0);

	out[len > 0 ? len : 0] = '\0';
}

int named_kill_supervisor(const struct named *n, struct err *e)
{
	CLEANUP(named_run_done) struct named_run run = { 0 };

	if (named_load_run(n, &run, e) < 0)
		return -1;
	return lockholder_kill(n->dir_fd, LOCK_FILE, (pid_t)run.supervisor_pid, e);
}

int named_save_notices(const struct named *n, const struct buf *texts, struct err *e)
{
	return replace_file(n->dir_fd, NOTICES_FILE, texts, 0, e);
}

void named_take_notices(const struct named *n, char ***ret)
{
	cleanup_free char *texts = NULL;
	size_t len = 0;

	if (file_read_at(n->dir_fd, NOTICES_FILE, NAMED_NOTICES_MAX_BYTES, &texts, &len) < 0)
		return;
	(void)unlinkat(n->dir_fd, NOTICES_FILE, 0);
	for (size_t at = 0; at < len; at += strlen(texts + at) + 1)
		(void)keyrows_list_add(ret, texts + at);
}

int named_add_processes(const struct named *n, const struct named_run *r, struct err *e)
{
	const struct named_run added = {
		.init_pid = r->init_pid,
		.host_gid = r->host_gid,
		.switches_ids = r->switches_ids,
	};
	cleanup_buf struct buf bytes;
	size_t heading;

	buf_init(&bytes, NAMED_RECORD_MAX_BYTES);
	keyrows_format(&run_format, &added, &bytes);
	heading = strlen(bytes.bytes) + 1; /* the file has its heading already */
	return append_rows(n, bytes.bytes + heading, bytes.len - heading, e);
}

int named_keep_rules(const struct named *n, const struct egress *rules, struct err *e)
{
	cleanup_buf struct buf text;

	buf_init(&text, EGRESS_TEXT_MAX_BYTES);
	if (faccessat(n->dir_fd, RULES_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	egress_save(rules, &text);
	return replace_file(n->dir_fd, RULES_FILE, &text, 0, e);
}

int named_restore_rules(const struct named *n, struct egress *rules, struct err *e)
{
	cleanup_free char *text = NULL;
	struct egress kept = { 0 };
	size_t len = 0;
	int r = file_read_at(n->dir_fd, RULES_FILE, EGRESS_TEXT_MAX_BYTES, &text, &len);

	if (r == -ENOENT)
		return 0; /* the rules were never changed */
	if (r < 0)
		return err_sys(e, -r, "read the network rules of sandbox '%s'", n->name);
	if (egress_load(text, &kept, e) < 0)
		return err_wrap(e, "sandbox '%s'", n->name);
	egress_done(rules);
	*rules = kept;
	return 0;
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

int named_load_run(const struct named *n, struct named_run *ret, struct err *e)
{
	CLEANUP(named_run_done) struct named_run found = { 0 };
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int r = file_read_at(n->dir_fd, RUN_FILE, NAMED_RECORD_MAX_BYTES, &bytes, &len);

	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, "sandbox '%s' was never started", n->name);
	if (r < 0)
		return err_sys(e, -r, "read what sandbox '%s' runs", n->name);
	if (len == 0) { /* the machine went down before the file was flushed */
		ret->state = NAMED_RUNNING;
		return 0;
	}
	if (keyrows_parse(&run_format, bytes, len, &found, e) < 0)
		return err_wrap(e, "sandbox '%s'", n->name);
	if (found.state >= NAMED_STATE_COUNT)
		return err_set(e, ERR_CORRUPT, "sandbox '%s' has an unknown state", n->name);
	if (found.reason && !found.reason[0]) { /* cleared by add_start() */
		free(found.reason);
		found.reason = NULL;
	}
	*ret = found;
	found = (struct named_run){ 0 };
	return 0;
}

/* ---- directories ---- */

/* Opens without creating, which would fail on a full disk. *ret_fd is -1 if it does not exist. */
static int find_subdir(int all_fd, const char *name, int *ret_fd, struct err *e)
{
	int fd = openat(all_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 && errno != ENOENT)
		return err_sys(e, errno, "open '%s'", name);
	*ret_fd = fd;
	return 0;
}

static int find_all(const struct ak *ak, int *ret_fd, struct err *e)
{
	cleanup_free char *path = NULL;

	if (statedir_path(ak, NAMED_DIR, &path, e) < 0)
		return -1;
	return find_subdir(AT_FDCWD, path, ret_fd, e);
}

int named_open_all(const struct ak *ak, int *ret_fd, struct err *e)
{
	cleanup_free char *path = NULL;
	int r;

	if (statedir_path(ak, NAMED_DIR, &path, e) < 0 ||
	    find_subdir(AT_FDCWD, path, ret_fd, e) < 0)
		return -1;
	if (*ret_fd >= 0)
		return 0;
	r = file_make_dirs(path, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", path);
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? err_sys(e, errno, "open '%s'", path) : 0;
}

static int open_subdir(int all_fd, const char *name, int *ret_fd, struct err *e)
{
	if (find_subdir(all_fd, name, ret_fd, e) < 0)
		return -1;
	if (*ret_fd >= 0)
		return 0;
	if (mkdirat(all_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s'", name);
	*ret_fd = openat(all_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? err_sys(e, errno, "open '%s'", name) : 0;
}

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

int named_open_damaged(const struct ak *ak, const char *name, struct named *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;
	cleanup_fd int all_fd = -1;

	named_init(&n);
	if (named_check_name(name, e) < 0 || find_all(ak, &all_fd, e) < 0)
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
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (named_open_damaged(ak, name, &n, e) < 0)
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

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int named_list(const struct ak *ak, char ***ret, struct err *e)
{
	cleanup_fd int all_fd = -1;
	struct dirent *entry;
	char **list = NULL;
	size_t count = 0;
	DIR *dir;
	int sys;

	*ret = NULL;
	if (find_all(ak, &all_fd, e) < 0)
		return -1;
	if (all_fd < 0)
		return 0;
	dir = fdopendir(all_fd);
	if (!dir)
		return err_sys(e, errno, "list the sandboxes");
	all_fd = -1;
	while ((errno = 0, entry = readdir(dir))) {
		struct err ignored;

		if (named_check_name(entry->d_name, &ignored) < 0)
			continue;
		list = mem_grow(list, count + 2, sizeof(*list));
		list[count++] = mem_dup(entry->d_name);
		list[count] = NULL;
	}
	sys = errno;
	(void)closedir(dir);
	if (sys != 0) { /* fail: garbage collection would remove what a partial list omits */
		keyrows_list_free(&list);
		return err_sys(e, sys, "list the sandboxes");
	}
	if (count > 1)
		qsort(list, count, sizeof(*list), by_text);
	*ret = list;
	return 0;
}

/* ---- the lock ---- */

static int open_lock(struct named *n, struct err *e)
{
	if (n->lock_fd < 0)
		n->lock_fd = openat(n->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
				    0600);
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

void named_unlock(struct named *n)
{
	cleanup_closep(&n->lock_fd);
	n->has_lock = false;
}

bool named_is_locked(const struct named *n)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };
	cleanup_fd int fd = openat(n->dir_fd, LOCK_FILE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return !file_is_absence(-errno);
	return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

enum named_state named_judge(const struct named *n, const struct named_run *r,
			     const char **ret_reason)
{
	bool is_live = r->state == NAMED_RUNNING || r->state == NAMED_PAUSED;

	*ret_reason = r->reason;
	/* if we hold the lock, no supervisor runs */
	if (!is_live || (!n->has_lock && named_is_locked(n)))
		return (enum named_state)r->state;
	*ret_reason = "supervisor died";
	return NAMED_STOPPED;
}

/* ---- creating and removing ---- */

#define DISK_PREFIX "disk."

void named_format_disk(uint64_t number, char out[NAMED_DISK_NAME_MAX_BYTES])
{
	(void)snprintf(out, NAMED_DISK_NAME_MAX_BYTES, DISK_PREFIX "%" PRIu64, number);
}

/* The lock lets us change the disk's number; read the other fields again. */
static int save_replaced(struct named *n, char *const *layers, struct err *e)
{
	struct named changed;
	int r;

	if (named_begin_change(n, e) < 0)
		return -1;
	changed = *n;
	changed.disk_number++;
	changed.layers = (char **)(uintptr_t)layers;
	r = named_save(&changed, e);
	named_end_change(n);
	if (r < 0)
		return -1;
	n->disk_number = changed.disk_number;
	keyrows_list_free(&n->layers);
	for (; layers && *layers; layers++)
		(void)keyrows_list_add(&n->layers, *layers);
	return 0;
}

/* Opens the trash beside the sandbox's directory. */
static int open_trash(const struct named *n, int *ret_fd, struct err *e)
{
	cleanup_fd int all_fd =
		openat(n->dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (all_fd < 0)
		return err_sys(e, errno, "open the directory of sandboxes");
	return open_subdir(all_fd, TRASH_DIR, ret_fd, e);
}

/* Moves the disk to the trash; if there is no space even for that, removes it here. */
static void discard_disk(const struct named *n, const char *name, char ret_old[NAMED_ID_BYTES + 1])
{
	cleanup_fd int trash_fd = -1;
	struct err ignored;

	named_random_id(ret_old);
	if (open_trash(n, &trash_fd, &ignored) == 0 &&
	    renameat(n->dir_fd, name, trash_fd, ret_old) == 0)
		return;
	ret_old[0] = '\0';
	/* leftovers are removed before the next start */
	(void)!owner_sweep(n->dir_fd, name, &ignored);
}

void named_sweep_old_disk(const struct named *n, const char *old)
{
	cleanup_fd int trash_fd = -1;
	struct err ignored;

	if (old[0] && open_trash(n, &trash_fd, &ignored) == 0)
		(void)!owner_sweep(trash_fd, old, &ignored);
}

int named_replace_disk(struct named *n, char *const *layers, char ret_old[NAMED_ID_BYTES + 1],
		       struct err *e)
{
	char old_name[NAMED_DISK_NAME_MAX_BYTES], new_name[NAMED_DISK_NAME_MAX_BYTES];

	assert(n->has_lock);
	named_sweep_disks(n);
	named_format_disk(n->disk_number, old_name);
	named_format_disk(n->disk_number + 1, new_name);
	if (mkdirat(n->dir_fd, new_name, 0700) < 0)
		return err_sys(e, errno, "create '%s'", new_name);
	if (save_replaced(n, layers, e) < 0) {
		(void)unlinkat(n->dir_fd, new_name, AT_REMOVEDIR);
		return -1;
	}
	discard_disk(n, old_name, ret_old);
	return 0;
}

void named_sweep_disks(const struct named *n)
{
	char current[NAMED_DISK_NAME_MAX_BYTES];
	int fd = openat(n->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct err ignored;

	named_format_disk(n->disk_number, current);
	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, DISK_PREFIX, sizeof(DISK_PREFIX) - 1) == 0 &&
		    strcmp(entry->d_name, current) != 0)
			(void)!owner_sweep(n->dir_fd, entry->d_name, &ignored);
	if (dir)
		(void)closedir(dir);
}

#define DISK_LOCK_WAIT_MS 5000u

/*
 * Two loop devices on one image file would corrupt it: only the supervisor or the lock's owner
 * mounts.
 */
static int mount_own_disk(struct named *n, int dir_fd, int *ret_fd, struct err *e)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	cleanup_fd int control_fd = -1, tree_fd = -1;

	if (!n->has_lock && control_connect(n->dir_fd, n->name, &control_fd, e) == 0) {
		if (control_ask(control_fd, CONTROL_DISK, NULL, 0, &answer, e) < 0)
			return -1;
		if (answer.fd_count != 1)
			return err_set(e, ERR_REMOTE, "the supervisor gave no disk");
		*ret_fd = take_fd(&answer.fds[0]);
		return 0;
	}
	if (!n->has_lock && named_lock_within(n, DISK_LOCK_WAIT_MS, e) < 0)
		return -1;
	return disk_mount_file(dir_fd, &tree_fd, ret_fd, e);
}

static int open_disk(struct named *n, int *ret_fd, struct err *e)
{
	char name[NAMED_DISK_NAME_MAX_BYTES];
	cleanup_fd int fd = -1;

	named_format_disk(n->disk_number, name);
	fd = openat(n->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, errno, "open the disk of sandbox '%s'", n->name);
	if (disk_has_file(fd))
		return mount_own_disk(n, fd, ret_fd, e);
	*ret_fd = take_fd(&fd);
	return 0;
}

int named_open_upper(struct named *n, int *ret_fd, struct err *e)
{
	cleanup_fd int disk_fd = -1;
	int fd;

	if (open_disk(n, &disk_fd, e) < 0)
		return -1;
	fd = openat(disk_fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno != ENOENT)
		return err_sys(e, errno, "open what sandbox '%s' has written", n->name);
	*ret_fd = fd;
	return 0;
}

static int make_files(struct named *n, const struct policy *p, struct err *e)
{
	char disk[NAMED_DISK_NAME_MAX_BYTES];

	named_format_disk(n->disk_number, disk);
	if (open_lock(n, e) < 0)
		return -1;
	if (!try_lock(n))
		return err_set(e, ERR_BUSY, "a new sandbox is locked by someone else");
	if (named_save(n, e) < 0 || named_save_policy(n, p, e) < 0)
		return -1;
	if (mkdirat(n->dir_fd, disk, 0700) < 0 || mkdirat(n->dir_fd, "log", 0700) < 0)
		return err_sys(e, errno, "create the directories of sandbox '%s'", n->name);
	return 0;
}

static int appear(const struct ak *ak, int making_fd, int all_fd, const struct named *n,
		  struct err *e)
{
	if (syscall(SYS_renameat2, making_fd, n->id, all_fd, n->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EEXIST && named_owner(ak)) /* a key's caller must not learn whose it is */
		return err_set(e, ERR_EXISTS, "the name '%s' is taken", n->name);
	if (errno == EEXIST)
		return err_set(e, ERR_EXISTS,
			       "there is a sandbox '%s' already ('agentkernel remove %s' removes "
			       "it)",
			       n->name, n->name);
	return err_sys(e, errno, "name sandbox '%s'", n->name);
}

int named_create(const struct ak *ak, struct named *n, const struct policy *p, struct err *e)
{
	cleanup_fd int all_fd = -1, making_fd = -1;
	struct err ignored;

	if (named_check_name(n->name, e) < 0 || named_open_all(ak, &all_fd, e) < 0 ||
	    open_subdir(all_fd, MAKING_DIR, &making_fd, e) < 0)
		return -1;
	/* named_sweep_trash() takes it exclusively: no removal between mkdir and lock */
	if (flock(making_fd, LOCK_SH) < 0)
		return err_sys(e, errno, "lock '%s'", MAKING_DIR);
	if (!n->id[0])
		named_random_id(n->id);
	n->created_s = (uint64_t)time(NULL);
	if (mkdirat(making_fd, n->id, 0700) < 0)
		return err_sys(e, errno, "create sandbox '%s'", n->name);
	n->dir_fd = openat(making_fd, n->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (n->dir_fd < 0) {
		(void)err_sys(e, errno, "open sandbox '%s'", n->name);
	} else if (make_files(n, p, e) == 0 && appear(ak, making_fd, all_fd, n, e) == 0) {
		return 0;
	}
	(void)!owner_sweep(making_fd, n->id, &ignored);
	return -1;
}

int named_trash(const struct ak *ak, const struct named *n, struct err *e)
{
	cleanup_fd int all_fd = -1, trash_fd = -1;

	if (find_all(ak, &all_fd, e) < 0)
		return -1;
	if (all_fd < 0)
		return 0;
	if (open_subdir(all_fd, TRASH_DIR, &trash_fd, e) < 0) {
		if (is_full(e->sys)) /* no space even for a directory entry: remove it in place */
			return owner_sweep(all_fd, n->name, e);
		return -1;
	}
	if (renameat(all_fd, n->name, trash_fd, n->id) == 0 || errno == ENOENT)
		return owner_sweep(trash_fd, n->id, e);
	if (is_full(errno))
		return owner_sweep(all_fd, n->name, e);
	return err_sys(e, errno, "remove sandbox '%s'", n->name);
}

/* A process that works on a sandbox holds its lock. */
static bool is_worked_on(int dir_fd, const char *name)
{
	struct named n;
	bool is_locked;

	named_init(&n);
	n.dir_fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	is_locked = n.dir_fd >= 0 ? named_is_locked(&n) : !file_is_absence(-errno);
	named_done(&n);
	return is_locked;
}

static int sweep_all(int all_fd, const char *name, unsigned *count, struct err *e)
{
	cleanup_fd int dir_fd = -1;
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	if (find_subdir(all_fd, name, &dir_fd, e) < 0)
		return -1;
	if (dir_fd < 0)
		return 0;
	dir = flock(dir_fd, LOCK_EX) < 0 ? NULL : fdopendir(dir_fd);
	if (!dir)
		return err_sys(e, errno, "list '%s'", name);
	dir_fd = -1;
	while (r == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || is_worked_on(dirfd(dir), entry->d_name))
			continue;
		r = owner_sweep(dirfd(dir), entry->d_name, e);
		*count += r == 0;
	}
	(void)closedir(dir);
	return r;
}

int named_sweep_trash(const struct ak *ak, unsigned *ret_count, struct err *e)
{
	cleanup_fd int all_fd = -1;
	unsigned count = 0;

	*ret_count = 0;
	if (find_all(ak, &all_fd, e) < 0)
		return -1;
	if (all_fd < 0)
		return 0;
	if (sweep_all(all_fd, MAKING_DIR, &count, e) < 0 ||
	    sweep_all(all_fd, TRASH_DIR, &count, e) < 0)
		return -1;
	*ret_count = count;
	return 0;
}
