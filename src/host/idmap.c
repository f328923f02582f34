/*
 * idmap - maps the sandbox's users to host ids; see idmap.h.
 *
 * A slot is one byte of /run/agentkernel/ids, locked with an open-file-description lock: the kernel
 * drops it when the last process that holds the description is gone, so nothing has to be cleaned
 * up and a crash cannot leak a slot. Supervisor and init both hold the lock.
 */
#include "host/idmap.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/wall.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IDMAP_RUN_DIR "/run/agentkernel"
#define IDMAP_LOCK_FILE IDMAP_RUN_DIR "/ids"
#define MAP_MAX_BYTES 64

/*
 * Root in a container may have no more ids than an ordinary user. Private ranges need a user
 * namespace whose own map includes them; reading the first line of the map is enough.
 */
static int find_private_ranges(bool *ret, struct err *e)
{
	uint32_t inside, outside, count;
	char line[MAP_MAX_BYTES];
	int r;

	*ret = false;
	if (geteuid() != 0)
		return 0;
	r = file_read_line(AT_FDCWD, "/proc/self/uid_map", line, sizeof(line));
	if (r < 0)
		return err_sys(e, -r, "read /proc/self/uid_map");
	if (sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count) != 3)
		return err_set(e, ERR_SYSTEM, "/proc/self/uid_map is not a map: '%s'", line);
	*ret = inside == 0 && count > IDMAP_FIRST_ID + IDMAP_SLOT_COUNT * IDMAP_RANGE_COUNT;
	return 0;
}

static int open_lock_file(int *ret_fd, struct err *e)
{
	int fd = open(IDMAP_LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 && errno == ENOENT) {
		int r = file_make_dirs(IDMAP_RUN_DIR, 0700);

		if (r < 0)
			return err_sys(e, -r, "create %s", IDMAP_RUN_DIR);
		fd = open(IDMAP_LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	}
	if (fd < 0)
		return err_sys(e, errno, "open %s", IDMAP_LOCK_FILE);
	*ret_fd = fd;
	return 0;
}

/* Starts at a slot derived from our pid, so that concurrent runs rarely collide. */
static int lock_slot(int fd, uint32_t *ret_slot, struct err *e)
{
	uint32_t start = (uint32_t)getpid() % IDMAP_SLOT_COUNT;

	for (uint32_t i = 0; i < IDMAP_SLOT_COUNT; i++) {
		uint32_t slot = (start + i) % IDMAP_SLOT_COUNT;
		struct flock lock = { .l_type = F_WRLCK, .l_start = slot, .l_len = 1 };

		if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
			*ret_slot = slot;
			return 0;
		}
		if (errno != EAGAIN && errno != EACCES)
			return err_sys(e, errno, "lock a range of ids");
	}
	return err_set(e, ERR_LIMIT, "all %u ranges of ids are in use", IDMAP_SLOT_COUNT);
}

int idmap_init(struct idmap *m, uint32_t uid, uint32_t gid, unsigned flags, struct err *e)
{
	const char *why = NULL;
	cleanup_fd int lock_fd = -1;
	uint32_t slot = 0;
	bool has_ranges;

	*m = (struct idmap){
		.uid = uid, .gid = gid, .host_uid = geteuid(), .host_gid = getegid(), .lock_fd = -1
	};
	if (find_private_ranges(&has_ranges, e) < 0)
		return -1;
	if (!has_ranges) {
		if (flags & IDMAP_WANTS_MANY && subid_find(&m->subid, &why))
			m->kind = IDMAP_SUBIDS;
		return 0;
	}
	if (open_lock_file(&lock_fd, e) < 0 || lock_slot(lock_fd, &slot, e) < 0)
		return -1;
	m->kind = IDMAP_PRIVATE;
	m->host_uid = m->host_gid = IDMAP_FIRST_ID + slot * IDMAP_RANGE_COUNT;
	m->lock_fd = take_fd(&lock_fd);
	return 0;
}

void idmap_done(struct idmap *m)
{
	cleanup_closep(&m->lock_fd);
}

uint32_t idmap_helper_id(const struct idmap *m)
{
	return m->host_uid + IDMAP_MAPPED_COUNT;
}

static int write_map(const char *path, uint32_t inside, uint32_t outside, uint32_t count,
		     struct err *e)
{
	char text[MAP_MAX_BYTES];
	int r;

	(void)snprintf(text, sizeof(text), "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", inside, outside,
		       count);
	r = file_write_at(AT_FDCWD, path, text);
	if (r < 0)
		return err_sys(e, -r, "write %s", path);
	return 0;
}

int idmap_write_own(const struct idmap *m, struct err *e)
{
	int r = file_write_at(AT_FDCWD, "/proc/self/setgroups", "deny");

	if (r < 0)
		return err_sys(e, -r, "write /proc/self/setgroups");
	if (write_map("/proc/self/gid_map", m->gid, m->host_gid, 1, e) < 0)
		return -1;
	return write_map("/proc/self/uid_map", m->uid, m->host_uid, 1, e);
}

int idmap_write_for(const struct idmap *m, pid_t pid, struct err *e)
{
	char path[MAP_MAX_BYTES];

	if (m->kind == IDMAP_SUBIDS)
		return subid_write_maps(&m->subid, IDMAP_MAPPED_COUNT - 1, pid, e);
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	if (write_map(path, 0, m->host_gid, IDMAP_MAPPED_COUNT, e) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	return write_map(path, 0, m->host_uid, IDMAP_MAPPED_COUNT, e);
}

int idmap_become_inside_root(const struct idmap *m, struct err *e)
{
	if (m->kind == IDMAP_ONE)
		return 0;
	/* by system call number: the libc versions signal other threads, and there are none */
	if (wall_stands(WALL_GROUPS_DROPPED) && syscall(SYS_setgroups, 0, NULL) < 0)
		return err_sys(e, errno, "drop the caller's groups");
	if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
		return err_sys(e, errno, "take the sandbox's own ids");
	return 0;
}

#define HOLDER_STACK_BYTES 4096
#define HOLDER_KILLS_MAX 3u

/*
 * Main function of a process that only holds a new user namespace until we have opened it. It
 * shares our memory to save a copy; it could only change errno there, and none of its calls fails.
 *
 * A process that has exited but was not reaped still has its namespace, and root may still write
 * its maps. So for root it exits at once, which saves a wake-up and a signal. For other users the
 * kernel shows the /proc files of an exited process as root's; there it waits until we kill it or,
 * if we die first, the kernel does.
 */
static int holder_main(void *parent)
{
	if (!parent)
		_exit(0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (syscall(SYS_getppid) != *(const pid_t *)parent)
		_exit(0);
	for (;;)
		(void)pause();
}

struct holder {
	pid_t pid, parent;
	_Alignas(16) char stack[HOLDER_STACK_BYTES];
};

static int holder_start(struct holder *h, struct err *e)
{
	h->parent = getpid();
	h->pid = clone(holder_main, h->stack + sizeof(h->stack), CLONE_VM | CLONE_NEWUSER | SIGCHLD,
		       geteuid() == 0 ? NULL : &h->parent);
	return h->pid < 0 ? err_sys(e, errno, "create a user namespace for a mount") : 0;
}

/*
 * Our own child and not reaped, so the pid cannot have been reused. It runs on our stack, which we
 * must not use again while it lives: rather than return then, we end.
 */
static void holder_stop(const struct holder *h)
{
	for (unsigned tries = 0; kill(h->pid, SIGKILL) < 0; tries++)
		assert(tries < HOLDER_KILLS_MAX);
	while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

/* Writes the maps of a holder process. */
typedef int write_maps_fn(const void *context, pid_t holder, struct err *e);

/* Opens a new user namespace with these maps; only the descriptor keeps it alive. */
static int open_namespace(write_maps_fn *write_maps, const void *context, int *ret_fd,
			  struct err *e)
{
	char path[MAP_MAX_BYTES];
	struct holder h;
	int fd = -1;

	if (holder_start(&h, e) < 0)
		return -1;
	if (write_maps(context, h.pid, e) == 0) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)h.pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			(void)err_sys(e, errno, "open a user namespace");
	}
	holder_stop(&h);
	if (fd < 0)
		return -1;
	*ret_fd = fd;
	return 0;
}

/* The texts of uid_map and gid_map. */
struct maps {
	char uids[MAP_MAX_BYTES * 3], gids[MAP_MAX_BYTES * 3];
};

static int write_file(pid_t holder, const char *name, const char *text, struct err *e)
{
	char path[MAP_MAX_BYTES];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)holder, name);
	r = file_write_at(AT_FDCWD, path, text);
	return r < 0 ? err_sys(e, -r, "write %s", path) : 0;
}

static int write_texts(const void *context, pid_t holder, struct err *e)
{
	const struct maps *m = context;

	/* an unprivileged process must deny setgroups before it may write a gid_map */
	if (geteuid() != 0 && write_file(holder, "setgroups", "deny", e) < 0)
		return -1;
	if (write_file(holder, "gid_map", m->gids, e) < 0)
		return -1;
	return write_file(holder, "uid_map", m->uids, e);
}

static int write_subids(const void *context, pid_t holder, struct err *e)
{
	return subid_write_maps(context, IDMAP_MAPPED_COUNT - 1, holder, e);
}

/*
 * Maps ids on disk to host ids: the owner becomes the sandbox's user `id`, and ids from
 * IDMAP_FOREIGN_ID up become the sandbox's other ids. If a sandbox gave the whole directory away,
 * the owner itself is such a foreign id; then it is the only entry, because no id may appear twice
 * in a map.
 */
static void format_owner_map(char *out, size_t size, uint32_t owner, uint32_t host_first,
			     uint32_t id)
{
	const uint32_t count = IDMAP_MAPPED_COUNT;
	int n = snprintf(out, size, "%" PRIu32 " %" PRIu32 " 1\n", owner, host_first + id);

	if (owner >= IDMAP_FOREIGN_ID && owner - IDMAP_FOREIGN_ID < count)
		return;
	if (id > 0)
		n += snprintf(out + n, size - (size_t)n, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
			      IDMAP_FOREIGN_ID, host_first, id);
	if (id < count - 1)
		(void)snprintf(out + n, size - (size_t)n, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
			       IDMAP_FOREIGN_ID + id + 1, host_first + id + 1, count - 1 - id);
}

int idmap_open_owner_ns(const struct idmap *m, uint32_t owner_uid, uint32_t owner_gid, int *ret_fd,
			struct err *e)
{
	struct maps maps;

	if (m->has_owner_ns && m->owner_uid == owner_uid && m->owner_gid == owner_gid) {
		*ret_fd = fcntl(m->owner_ns_fd, F_DUPFD_CLOEXEC, 0);
		return *ret_fd < 0 ? err_sys(e, errno, "duplicate a user namespace") : 0;
	}
	format_owner_map(maps.uids, sizeof(maps.uids), owner_uid, m->host_uid, m->uid);
	format_owner_map(maps.gids, sizeof(maps.gids), owner_gid, m->host_gid, m->gid);
	return open_namespace(write_texts, &maps, ret_fd, e);
}

static void format_both(struct maps *out, uint32_t outside_uid, uint32_t outside_gid,
			uint32_t count)
{
	(void)snprintf(out->uids, sizeof(out->uids), "0 %" PRIu32 " %" PRIu32 "\n", outside_uid,
		       count);
	(void)snprintf(out->gids, sizeof(out->gids), "0 %" PRIu32 " %" PRIu32 "\n", outside_gid,
		       count);
}

int idmap_open_store_ns(int *ret_fd, struct err *e)
{
	const char *why = NULL;
	struct subid subid;
	struct maps maps;
	bool has_ranges;

	if (find_private_ranges(&has_ranges, e) < 0)
		return -1;
	if (!has_ranges && subid_find(&subid, &why))
		return open_namespace(write_subids, &subid, ret_fd, e);
	if (has_ranges) /* identity map */
		format_both(&maps, 0, 0, IDMAP_RANGE_COUNT);
	else
		format_both(&maps, geteuid(), getegid(), 1);
	return open_namespace(write_texts, &maps, ret_fd, e);
}

static unsigned usable_count(const struct subid_range *r)
{
	return r->count < IDMAP_MAPPED_COUNT - 1 ? r->count : IDMAP_MAPPED_COUNT - 1;
}

int idmap_format_owners(char out[IDMAP_OWNERS_MAX_BYTES], struct err *e)
{
	const char *why = NULL;
	struct subid s;
	bool has_ranges;

	if (find_private_ranges(&has_ranges, e) < 0)
		return -1;
	if (has_ranges)
		(void)snprintf(out, IDMAP_OWNERS_MAX_BYTES, "raw");
	else if (subid_find(&s, &why))
		(void)snprintf(out, IDMAP_OWNERS_MAX_BYTES, "sub-%" PRIx32 "-%" PRIx32 "-%x-%x",
			       s.uids.first, s.gids.first, usable_count(&s.uids),
			       usable_count(&s.gids));
	else
		(void)snprintf(out, IDMAP_OWNERS_MAX_BYTES, "one");
	return 0;
}
