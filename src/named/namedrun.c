/*
 * namedrun - the run file of a named sandbox; see namedrun.h.
 *
 * Theory of operation. The file is replaced as a whole. On a full disk rows are appended instead,
 * which override earlier ones: a few more bytes usually fit into its last block, so a sandbox can
 * still be started and its end is still noted.
 */
#include "named/namedrun.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "named/namedfile.h"
#include "state/lockholder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_FILE "run"

#define ROW(key, kind, member) KEYROWS_ROW(struct namedrun, key, kind, member)
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
	[NAMED_CREATED] = "created", [NAMED_RUNNING] = "running", [NAMED_PAUSED] = "paused",
	[NAMED_STOPPED] = "stopped", [NAMED_DOZING] = "sleeping", [NAMED_ASLEEP] = "sleeping",
};

const char *namedrun_state_word(enum named_state state)
{
	return state_word[state];
}

bool namedrun_is_live(enum named_state state)
{
	return state == NAMED_RUNNING || state == NAMED_PAUSED || state == NAMED_DOZING;
}

void namedrun_done(struct namedrun *r)
{
	keyrows_done(&run_format, r);
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
static int add_end(const struct named *n, const struct namedrun *r, struct err *e)
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
static int add_start(const struct named *n, const struct namedrun *r, struct err *e)
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

int namedrun_save(const struct named *n, const struct namedrun *r, struct err *e)
{
	cleanup_buf struct buf bytes;
	struct err full;

	buf_init(&bytes, NAMED_RECORD_MAX_BYTES);
	keyrows_format(&run_format, r, &bytes);
	if (namedfile_replace(n->dir_fd, RUN_FILE, &bytes, NAMEDFILE_SWAP, e) == 0)
		return 0;
	full = *e;
	if (!namedfile_is_full(e->sys))
		return -1;
	if ((!namedrun_is_live((enum named_state)r->state) ? add_end(n, r, e)
							   : add_start(n, r, e)) == 0)
		return 0;
	*e = full; /* a sandbox that was never started has no file to append to */
	return -1;
}

int namedrun_add_processes(const struct named *n, const struct namedrun *r, struct err *e)
{
	const struct namedrun added = {
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

int namedrun_load(const struct named *n, struct namedrun *ret, struct err *e)
{
	CLEANUP(namedrun_done) struct namedrun found = { 0 };
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
	found = (struct namedrun){ 0 };
	return 0;
}

enum named_state namedrun_judge(const struct named *n, const struct namedrun *r,
				char ret_build[BUILDID_MAX_BYTES], const char **ret_reason)
{
	bool is_live = namedrun_is_live((enum named_state)r->state);

	*ret_reason = r->reason;
	ret_build[0] = '\0';
	/* if we hold the lock, no supervisor runs */
	if (!is_live || (!n->has_lock && named_is_locked_by(n, ret_build)))
		return (enum named_state)r->state;
	*ret_reason = "supervisor died";
	return NAMED_STOPPED;
}

int namedrun_kill_supervisor(const struct named *n, struct err *e)
{
	CLEANUP(namedrun_done) struct namedrun run = { 0 };

	if (namedrun_load(n, &run, e) < 0)
		return -1;
	return lockholder_kill(n->dir_fd, NAMED_LOCK_FILE, (pid_t)run.supervisor_pid, e);
}
