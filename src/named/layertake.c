/*
 * layertake - copies what a sandbox has written at one moment; see layertake.h.
 *
 * Theory of operation. A child that may read all of the sandbox's files makes the passes of
 * tree/treesync; we tell it when, and who has which files mapped. While the sandbox runs, passes
 * are made until one copies little, then one while it is frozen. The freeze is bound to a
 * connection of ours that the child does not have, so it ends with this process in any case, and
 * the child ends with us, too. A stopped sandbox is locked, and copied in a single pass.
 *
 * An index (tree/treeindex) in the sandbox's directory describes the last checkpoint: what it was
 * copied from, and in which layers the copies are. With it, a layer has only the differences to the
 * last complete layer, its base; files that have changed since the base, but not since the last
 * checkpoint, are hard links to that one's layer. So stacks have two layers at most for each disk,
 * and removing a checkpoint frees what is its alone. When the differences exceed half of the base,
 * a complete layer is made again, whose files are links, too, wherever a copy is there. The index
 * is only a shortcut: without it, or if it does not match, all is copied.
 */
#include "named/layertake.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "named/control.h"
#include "named/mappedfiles.h"
#include "named/named.h"
#include "named/nameddisk.h"
#include "named/namedrun.h"
#include "tree/owner.h"
#include "tree/treeindex.h"
#include "tree/treesync.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define LOCK_WAIT_MS 15000u
#define LOCK_LOOK_MS 50u
#define INDEX_FILE "index"
#define INDEX_NEW_FILE "index.new"
#define PASSES_MAX 5              /* while it runs */
#define ENOUGH_BYTES (4ull << 20) /* a pass that copies less is followed by the last one */
#define ENOUGH_COUNT 200u
#define SPARE_BYTES (64ull << 20) /* differences that are never too many */
#define SPARE_COUNT 4096u

void layertake_init(struct layertake *t)
{
	*t = (struct layertake){ .layer.dir_fd = -1, .index_fd = -1 };
}

void layertake_done(struct layertake *t)
{
	policy_done(&t->policy);
	cleanup_closep(&t->index_fd);
}

/* ---- holding still ---- */

/*
 * Connects to the supervisor of a running sandbox, or takes the lock of one that is not running:
 * then *ret_fd is -1. If the lock is taken but nobody listens, another process is starting the
 * sandbox: retry.
 */
static int reach(struct named *n, int *ret_fd, struct err *e)
{
	uint64_t end_ms = clock_now_ms() + LOCK_WAIT_MS;

	for (;;) {
		if (control_connect(n->dir_fd, n->name, ret_fd, e) == 0)
			return 0;
		if (e->code != ERR_NOT_FOUND)
			return -1;
		if (named_lock_within(n, LOCK_LOOK_MS, e) == 0) {
			*ret_fd = -1;
			return 0;
		}
		if (e->code != ERR_BUSY || clock_now_ms() >= end_ms)
			return -1;
	}
}

static int say_stopped(const struct named *n, struct err *e)
{
	return err_set(e, ERR_BUSY, "sandbox '%s' was stopped while it was copied", n->name);
}

/* A stop thaws the sandbox and closes our connection: the copy may be inconsistent. */
static int check_held(const struct named *n, int hold_fd, struct err *e)
{
	struct pollfd polled = { .fd = hold_fd, .events = POLLRDHUP };

	return hold_fd >= 0 && poll(&polled, 1, 0) != 0 ? say_stopped(n, e) : 0;
}

/* ---- the child ---- */

struct order {
	struct timespec began;
	uint64_t mapped_len; /* bytes that follow */
	uint64_t is_last, is_urgent;
};

struct answer {
	struct treesync_result result;
	uint64_t is_done; /* else the child's error follows when it ends */
};

struct work {
	struct treesync_options options;
	struct treeindex_header header;
	int socket_fd; /* the child's end */
	int parent_fd; /* the parent's, of which the child must not keep a copy: its end is a sign
			*/
	int index_fd;
};

/* Like file_write_all(), without SIGPIPE: the other process may have ended. */
static bool send_all(int socket_fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = send(socket_fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static int make_pass(const struct work *w, struct treesync *s, struct treesync_result *ret,
		     bool *ret_is_last, struct err *e)
{
	cleanup_free char *mapped = NULL;
	struct answer answer = { 0 };
	struct treesync_pass pass;
	struct order order;
	int r;

	if (!file_read_exactly(w->socket_fd, &order, sizeof(order)) ||
	    order.mapped_len > MAPPEDFILES_MAX_BYTES)
		return err_set(e, ERR_SYSTEM, "the process that checkpoints is gone");
	mapped = mem_alloc(order.mapped_len + 1);
	if (!file_read_exactly(w->socket_fd, mapped, order.mapped_len))
		return err_set(e, ERR_SYSTEM, "the process that checkpoints is gone");
	pass = (struct treesync_pass){ .began = order.began,
				       .mapped = mapped,
				       .mapped_len = order.mapped_len,
				       .is_last = order.is_last,
				       .is_urgent = order.is_urgent };
	r = treesync_run(s, &pass, &answer.result, e);
	answer.is_done = r == 0;
	*ret_is_last = order.is_last;
	*ret = answer.result;
	if (!send_all(w->socket_fd, &answer, sizeof(answer)) && r == 0)
		return err_set(e, ERR_SYSTEM, "the process that checkpoints is gone");
	return r;
}

static int work(void *context, struct err *e)
{
	const struct work *w = context;
	CLEANUP(treesync_freep) struct treesync *s = treesync_new(&w->options);
	struct treeindex_header header = w->header;
	struct treesync_result result = { 0 };
	bool is_last = false;
	struct err ignored;

	(void)close(w->parent_fd);
	while (!is_last)
		if (make_pass(w, s, &result, &is_last, e) < 0)
			return -1;
	if (treesync_settle(s, e) < 0)
		return -1;
	if (w->options.is_full) {
		header.base_entries = result.entry_count;
		header.base_bytes = result.bytes;
	}
	/* an index that is not whole is refused when it is read */
	if (w->index_fd >= 0)
		(void)!treeindex_write(w->options.index, &header, treesync_last_pass(s),
				       w->options.is_full, w->index_fd, &ignored);
	return 0;
}

/* ---- the last checkpoint ---- */

struct last {
	struct treeindex_header header;
	struct treeindex *index;
	int base_fd, previous_fd;
	bool is_full;
};

static void last_done(struct last *l)
{
	treeindex_freep(&l->index);
	cleanup_closep(&l->base_fd);
	cleanup_closep(&l->previous_fd);
}

static bool terminate(char text[TREEINDEX_TEXT_MAX_BYTES])
{
	return memchr(text, '\0', TREEINDEX_TEXT_MAX_BYTES) != NULL;
}

static bool load_index(const struct named *n, int store_fd, const struct stat *upper,
		       struct last *l)
{
	cleanup_fd int fd = openat(n->dir_fd, INDEX_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct treeindex_header *h = &l->header;
	struct err ignored;

	if (fd < 0 || treeindex_read(fd, h, &l->index, &ignored) < 0)
		return false;
	if (!terminate(h->sandbox) || !terminate(h->base) || !terminate(h->previous) ||
	    strcmp(h->sandbox, n->id) != 0 || h->disk_number != n->disk_number ||
	    h->top_inode != upper->st_ino)
		return false;
	/* a checkpoint that was removed meanwhile: its files are copied again */
	if (layerstore_open_layer(store_fd, h->base, &l->base_fd, &ignored) < 0)
		l->base_fd = -1;
	if (strcmp(h->base, h->previous) != 0 &&
	    layerstore_open_layer(store_fd, h->previous, &l->previous_fd, &ignored) < 0)
		l->previous_fd = -1;
	return true;
}

/* Is it time for a complete layer? */
static bool has_too_many(const struct last *l)
{
	uint64_t count = 0, bytes = 0;

	for (struct treeindex_node *n = treeindex_root(l->index); n; n = treeindex_next(n)) {
		if (n->place == TREEINDEX_BASE)
			continue;
		count++;
		bytes += S_ISREG(n->mode) ? n->size : 0;
	}
	return count > SPARE_COUNT + l->header.base_entries / 2 ||
	       bytes > SPARE_BYTES + l->header.base_bytes / 2;
}

static void find_last(const struct named *n, int store_fd, const struct stat *upper, struct last *l)
{
	if (!load_index(n, store_fd, upper, l)) {
		last_done(l);
		l->header = (struct treeindex_header){ 0 };
		l->index = treeindex_new();
	}
	l->is_full = l->base_fd < 0 || has_too_many(l) ||
		     keyrows_list_count(n->layers) + 2 > NAMED_LAYERS_MAX;
}

/* ---- the passes ---- */

struct taking {
	struct named *n;
	const struct layertake_options *o;
	struct layertake *t;
	int store_fd;
	int watch_fd; /* to the supervisor; -1: we have the lock */
	uint64_t init_pid;
	struct owner_job job;
	int socket_fd;
	uint64_t bytes_per_s; /* the sandbox's own io limit; 0: none */
	bool is_latest;       /* the index is the one of the checkpoint that the options name */
};

static uint64_t find_init(const struct named *n)
{
	struct namedrun run = { 0 };
	struct err ignored;
	uint64_t pid = 0;

	if (namedrun_load(n, &run, &ignored) == 0)
		pid = run.init_pid;
	namedrun_done(&run);
	return pid;
}

/* Waits for the child's answer; a stop ends the wait. */
static int await(const struct taking *k, struct answer *ret, struct err *e)
{
	struct pollfd polled[] = { { .fd = k->socket_fd, .events = POLLIN },
				   { .fd = k->watch_fd, .events = POLLRDHUP } };

	while (poll(polled, COUNT_OF(polled), -1) < 0 && errno == EINTR)
		continue;
	if (polled[0].revents)
		return file_read_exactly(k->socket_fd, ret, sizeof(*ret)) ? 0 : 1;
	return say_stopped(k->n, e);
}

/* Returns 1 if the child has failed: owner_finish() has its error. */
static int order_pass(const struct taking *k, bool is_last, struct treesync_result *ret,
		      struct err *e)
{
	cleanup_buf struct buf mapped;
	struct order order = { .is_last = is_last, .is_urgent = is_last && k->watch_fd >= 0 };
	struct answer answer = { 0 };
	int r;

	buf_init(&mapped, MAPPEDFILES_MAX_BYTES);
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &order.began);
	if (k->watch_fd >= 0)
		mappedfiles_collect(k->init_pid, &mapped);
	if (mapped.is_cut)
		return err_set(e, ERR_LIMIT, "the sandbox's processes have too many files mapped");
	order.mapped_len = mapped.len;
	if (!send_all(k->socket_fd, &order, sizeof(order)) ||
	    !send_all(k->socket_fd, mapped.bytes, mapped.len))
		return 1;
	r = await(k, &answer, e);
	if (r == 0)
		*ret = answer.result;
	return r != 0 ? r : !answer.is_done;
}

static int pass_while_it_runs(const struct taking *k, struct treesync_result *ret, struct err *e)
{
	for (unsigned i = 0; i < PASSES_MAX; i++) {
		int r = order_pass(k, false, ret, e);

		if (r != 0)
			return r;
		if (i == 0 && k->is_latest && ret->changed_count == 0) {
			k->t->is_unchanged = true;
			break;
		}
		if (ret->copied_bytes < ENOUGH_BYTES && ret->copied_count < ENOUGH_COUNT)
			break;
	}
	return 0;
}

/* Was the disk replaced since the first pass? Only while nobody has the sandbox's lock. */
static int check_upper(struct named *n, const struct stat *before, struct err *e)
{
	cleanup_fd int fd = -1;
	struct stat st;

	if (nameddisk_open_upper(n, &fd, e) < 0)
		return -1;
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != before->st_ino)
		return err_set(e, ERR_BUSY,
			       "the files of sandbox '%s' were replaced while they "
			       "were copied",
			       n->name);
	return 0;
}

/* Freezes a running sandbox, makes the last pass and lets it go on. */
static int pass_frozen(const struct taking *k, const struct stat *upper,
		       struct treesync_result *ret, struct err *e)
{
	uint64_t begin_us = clock_now_us();
	cleanup_fd int hold_fd = -1;
	int r = 0;

	if (k->watch_fd >= 0 &&
	    (control_connect(k->n->dir_fd, k->n->name, &hold_fd, e) < 0 ||
	     control_do(hold_fd, CONTROL_FREEZE, NULL, 0, e) < 0 || named_read_again(k->n, e) < 0))
		return -1;
	r = named_load_policy(k->n, &k->t->policy, e);
	if (r == 0 && k->watch_fd >= 0)
		r = check_upper(k->n, upper, e);
	if (r == 0)
		r = order_pass(k, true, ret, e);
	if (r == 0)
		r = check_held(k->n, hold_fd, e);
	cleanup_closep(&hold_fd);
	k->t->frozen_us = clock_now_us() - begin_us;
	return r;
}

static int make_passes(struct taking *k, const struct stat *upper, bool *ret_needs_full,
		       struct err *e)
{
	struct treesync_result result = { 0 };
	int r = k->watch_fd >= 0 ? pass_while_it_runs(k, &result, e) : 0;

	if (r == 0 && k->t->is_unchanged) {
		cleanup_closep(&k->socket_fd);
		owner_abort(&k->job);
		return 0;
	}
	if (r == 0)
		r = pass_frozen(k, upper, &result, e);
	*ret_needs_full = result.needs_full;
	cleanup_closep(&k->socket_fd);
	if (r < 0) {
		owner_abort(&k->job);
		return -1;
	}
	k->t->bytes = result.bytes;
	k->t->entries = result.entry_count;
	return owner_finish(&k->job, e);
}

/* ---- all of it ---- */

static void fill_header(const struct taking *k, const struct last *l, const struct stat *upper,
			struct treeindex_header *ret)
{
	*ret = l->header;
	(void)snprintf(ret->sandbox, sizeof(ret->sandbox), "%s", k->n->id);
	(void)snprintf(ret->previous, sizeof(ret->previous), "%s", k->t->layer.id);
	if (l->is_full)
		(void)snprintf(ret->base, sizeof(ret->base), "%s", k->t->layer.id);
	ret->disk_number = k->n->disk_number;
	ret->top_inode = upper->st_ino;
}

static int copy(struct taking *k, int upper_fd, const struct stat *upper, struct last *l,
		bool *ret_needs_full, struct err *e)
{
	struct work w = { .options = { .from_fd = upper_fd,
				       .to_fd = k->t->layer.dir_fd,
				       .base_fd = l->base_fd,
				       .previous_fd = l->previous_fd,
				       .index = l->index,
				       .is_full = l->is_full,
				       .bytes_per_s = k->bytes_per_s },
			  .index_fd = k->t->index_fd };
	int ends[2], r;

	fill_header(k, l, upper, &w.header);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, errno, "create a socket");
	k->socket_fd = ends[0];
	w.socket_fd = ends[1];
	w.parent_fd = ends[0];
	r = owner_start(work, &w, &k->job, e);
	(void)close(ends[1]);
	if (r < 0) {
		cleanup_closep(&k->socket_fd);
		return -1;
	}
	if (make_passes(k, upper, ret_needs_full, e) < 0)
		return err_wrap(e, "copy what sandbox '%s' has written", k->n->name);
	(void)snprintf(k->t->base, sizeof(k->t->base), "%s", l->is_full ? "" : w.header.base);
	return 0;
}

static int check_depth(const struct named *n, struct err *e)
{
	if (keyrows_list_count(n->layers) >= NAMED_LAYERS_MAX)
		return err_set(e, ERR_LIMIT,
			       "sandbox '%s' stands on %u checkpoints already: no more than that",
			       n->name, NAMED_LAYERS_MAX);
	return 0;
}

/* A sandbox that was never started has written nothing. */
static int copy_nothing(struct taking *k, struct err *e)
{
	if (fchmod(k->t->layer.dir_fd, 0755) < 0)
		return err_sys(e, errno, "prepare a layer");
	return named_load_policy(k->n, &k->t->policy, e);
}

/* The lower one of the sandbox's limits: a copy reads as much as it writes. */
static int find_rate(const struct named *n, uint64_t *ret, struct err *e)
{
	CLEANUP(policy_done) struct policy p = { 0 };

	if (named_load_policy(n, &p, e) < 0)
		return -1;
	*ret = p.io_read_bytes_per_s;
	if (*ret == 0 || (p.io_write_bytes_per_s && p.io_write_bytes_per_s < *ret))
		*ret = p.io_write_bytes_per_s;
	return 0;
}

static int take_once(struct taking *k, bool is_full, bool *ret_needs_full, struct err *e)
{
	CLEANUP(last_done) struct last l = { .base_fd = -1, .previous_fd = -1 };
	cleanup_fd int upper_fd = -1;
	struct stat upper;

	if (check_depth(k->n, e) < 0 || find_rate(k->n, &k->bytes_per_s, e) < 0 ||
	    nameddisk_open_upper(k->n, &upper_fd, e) < 0)
		return -1;
	if (upper_fd < 0)
		return copy_nothing(k, e);
	if (fstat(upper_fd, &upper) < 0)
		return err_sys(e, errno, "look at what sandbox '%s' has written", k->n->name);
	find_last(k->n, k->store_fd, &upper, &l);
	l.is_full |= is_full;
	k->is_latest = k->o->latest && strcmp(k->o->latest, l.header.previous) == 0;
	cleanup_closep(&k->t->index_fd);
	k->t->index_fd = openat(k->n->dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	return copy(k, upper_fd, &upper, &l, ret_needs_full, e);
}

static int take(struct taking *k, struct err *e)
{
	bool needs_full = false;
	int r;

	if (layerstore_begin(k->store_fd, &k->t->layer, e) < 0)
		return -1;
	r = take_once(k, false, &needs_full, e);
	if (r < 0 && needs_full) {
		layerstore_abort(k->store_fd, &k->t->layer);
		if (layerstore_begin(k->store_fd, &k->t->layer, e) < 0)
			return -1;
		r = take_once(k, true, &needs_full, e);
	}
	return r;
}

int layertake_run(struct named *n, int store_fd, const struct layertake_options *o,
		  struct layertake *ret, struct err *e)
{
	struct taking k = {
		.n = n, .o = o, .t = ret, .store_fd = store_fd, .watch_fd = -1, .socket_fd = -1
	};
	int r = reach(n, &k.watch_fd, e);

	if (r == 0 && k.watch_fd >= 0)
		r = named_read_again(n,
				     e); /* the disk stays the same while the supervisor is there */
	ret->is_running = k.watch_fd >= 0;
	k.init_pid = ret->is_running ? find_init(n) : 0;
	if (r == 0)
		r = take(&k, e);
	cleanup_closep(&k.watch_fd);
	named_unlock(n);
	if (r == 0 && !ret->is_unchanged)
		r = layerstore_commit(store_fd, &ret->layer, e);
	if (r < 0 || ret->is_unchanged)
		layerstore_abort(store_fd, &ret->layer);
	return r;
}

void layertake_keep_index(const struct named *n, struct layertake *t)
{
	char path[64];

	if (t->index_fd < 0)
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", t->index_fd);
	(void)unlinkat(n->dir_fd, INDEX_NEW_FILE, 0);
	/* without an index, the next copy is complete */
	if (linkat(AT_FDCWD, path, n->dir_fd, INDEX_NEW_FILE, AT_SYMLINK_FOLLOW) == 0 &&
	    renameat(n->dir_fd, INDEX_NEW_FILE, n->dir_fd, INDEX_FILE) < 0)
		(void)unlinkat(n->dir_fd, INDEX_NEW_FILE, 0);
}
