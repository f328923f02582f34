/*
 * fault - decides which call fails, and counts all calls; see fault.h.
 *
 * Theory of operation. One operation has many processes: the launcher, a janitor, an init, a
 * supervisor, helpers. They share one table, a file that each maps before main(), so it survives
 * fork, vfork, a change of root and a seccomp filter: counting only touches memory. Our own
 * programs get the path of the file in their environment; commands in a sandbox do not.
 *
 * The table, not the environment, selects the failing call: so a running supervisor can be made to
 * fail during a later command, and then run normally again. AGENTKERNEL_FAULT fills a new table;
 * tests/faults/sweep writes the table itself and reads the counts. Both know its layout.
 */
#include "fault.h"

#undef mmap
#undef open

#include <stdatomic.h>
#include <stdint.h>

#define POINTS_MAX 4096u
#define NAME_MAX_BYTES 56u
#define ENVIRONMENT_MAX 512u
#define PATIENCE 100000u /* with a process that died while it wrote a name */

enum { TABLE_FRESH, TABLE_ARMED, TABLE_OFF };
enum { SLOT_EMPTY, SLOT_BEING_NAMED, SLOT_NAMED };

struct point {
	atomic_uint state_of_slot;
	atomic_uint count;
	char name[NAME_MAX_BYTES];
};

struct table {
	atomic_uint state;
	uint32_t nth;
	int32_t error;       /* 0: the call's default */
	atomic_uint strikes; /* how often the fault was triggered: 0 or 1 */
	char name[64];
	struct point points[POINTS_MAX];
};

static struct table *table;
static char counts_variable[4096] = "AGENTKERNEL_FAULT_COUNTS=";

/* The default error of a call: one that it returns in practice. */
static const struct {
	const char *call; /* or a whole point */
	int error;        /* 0: never fails */
} errors[] = {
	{ "report.write", 0 }, /* a pipe with free space and a reader */
	{ "watch.statvfs",
	  0 }, /* ends the sandbox on purpose: without the count there is no limit */
	{ "cgroup.unlinkat", EBUSY },
	{ "getppid", 0 },
	{ "getrandom", 0 }, /* cannot fail for so few bytes after the kernel's start */
	{ "rt_sigaction", 0 },
	{ "rt_sigprocmask", 0 },
	{ "open", EMFILE },
	{ "openat", EMFILE },
	{ "openat2", EMFILE },
	{ "open_tree", EMFILE },
	{ "opendir", EMFILE },
	{ "fdopendir", ENOMEM },
	{ "fdopen", ENOMEM },
	{ "pipe2", EMFILE },
	{ "socket", EMFILE },
	{ "socketpair", EMFILE },
	{ "accept4", EMFILE },
	{ "memfd_create", EMFILE },
	{ "signalfd", EMFILE },
	{ "inotify_init1", EMFILE },
	{ "inotify_add_watch", ENOSPC },
	{ "pidfd_open", EMFILE },
	{ "dup", EMFILE },
	{ "dup2", EMFILE },
	{ "dup3", EMFILE },
	{ "fcntl", EMFILE },
	{ "flock", ENOLCK },
	{ "mkdir", ENOSPC },
	{ "mkdirat", ENOSPC },
	{ "mknodat", ENOSPC },
	{ "mkostemp", ENOSPC },
	{ "symlink", ENOSPC },
	{ "symlinkat", ENOSPC },
	{ "linkat", ENOSPC },
	{ "rename", ENOSPC },
	{ "renameat", ENOSPC },
	{ "renameat2", ENOSPC },
	{ "write", ENOSPC },
	{ "writev", ENOSPC },
	{ "pwrite", ENOSPC },
	{ "ftruncate", ENOSPC },
	{ "copy_file_range", ENOSPC },
	{ "fsetxattr", ENOSPC },
	{ "fork", EAGAIN },
	{ "vfork", EAGAIN },
	{ "clone", EAGAIN },
	{ "clone3", EAGAIN },
	{ "posix_spawn", EAGAIN },
	{ "execve", ENOMEM },
	{ "poll", EINTR },
	{ "wait4", EINTR },
	{ "waitpid", EINTR },
	{ "kill", EPERM },
	{ "pidfd_send_signal", EPERM },
	{ "sendmsg", ENOBUFS },
	{ "recvmsg", ENOMEM },
	{ "send", ENOBUFS },
	{ "recv", ENOMEM },
	{ "bind", ENOMEM },
	{ "listen", EADDRINUSE },
	{ "connect", ECONNREFUSED },
	{ "setsockopt", ENOMEM },
	{ "getsockopt", ENOBUFS },
	{ "getsockname", ENOBUFS },
	{ "mmap", ENOMEM },
	{ "malloc", ENOMEM },
	{ "calloc", ENOMEM },
	{ "realloc", ENOMEM },
	{ "strndup", ENOMEM },
	{ "vasprintf", ENOMEM },
	{ "prctl", EPERM },
	{ "capset", EPERM },
	{ "setgroups", EPERM },
	{ "setresuid", EPERM },
	{ "setresgid", EPERM },
	{ "setns", EPERM },
	{ "unshare", EPERM },
	{ "setrlimit", EPERM },
	{ "setsid", EPERM },
	{ "setpgid", EACCES },
	{ "chroot", EPERM },
	{ "sethostname", EPERM },
	{ "mount", ENOMEM },
	{ "umount2", EBUSY },
	{ "fsopen", ENOMEM },
	{ "fsconfig", ENOMEM },
	{ "fsmount", ENOMEM },
	{ "move_mount", ENOMEM },
	{ "mount_setattr", ENOMEM },
	{ "pivot_root", EBUSY },
	{ "close_range", ENOMEM },
	{ "keyctl", EDQUOT },
	{ "seccomp", ENOMEM },
	{ "landlock_create_ruleset", ENOMEM },
	{ "landlock_add_rule", ENOMEM },
	{ "landlock_restrict_self", E2BIG },
	{ "getcwd", ENOENT },
	{ "tcgetattr", EIO },
};

/* Errors that a test may select by name. */
static const struct {
	const char *word;
	int error;
} words[] = {
	{ "EIO", EIO },       { "ENOSPC", ENOSPC }, { "ENOMEM", ENOMEM }, { "EMFILE", EMFILE },
	{ "EINTR", EINTR },   { "EPERM", EPERM },   { "EACCES", EACCES }, { "ENOENT", ENOENT },
	{ "EAGAIN", EAGAIN }, { "EDQUOT", EDQUOT }, { "EBUSY", EBUSY },   { "EROFS", EROFS },
	{ "EEXIST", EEXIST }, { "ENOSYS", ENOSYS }, { "EINVAL", EINVAL }, { "ELOOP", ELOOP },
};

static int error_of(const char *point)
{
	const char *call = strchr(point, '.') + 1;

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (strcmp(errors[i].call, call) == 0 || strcmp(errors[i].call, point) == 0)
			return errors[i].error;
	return EIO;
}

/* ---- the table ---- */

static _Noreturn void refuse(const char *text)
{
	(void)fprintf(stderr, "AGENTKERNEL_FAULT: %s\n", text);
	_exit(2);
}

/* "record.renameat:2=EIO" */
static void arm(const char *text)
{
	const char *colon = strchr(text, ':');
	const char *equals = strchr(text, '=');

	if (!colon || (size_t)(colon - text) >= sizeof(table->name))
		refuse("not FILE.CALL:NUMBER");
	memcpy(table->name, text, (size_t)(colon - text));
	table->nth = (uint32_t)strtoul(colon + 1, NULL, 10);
	for (size_t i = 0; equals && i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(words[i].word, equals + 1) == 0)
			table->error = words[i].error;
	if (table->nth == 0 || (equals && table->error == 0))
		refuse("a number from 1 on, and an error that is known");
	atomic_store(&table->state, TABLE_ARMED);
}

__attribute__((constructor)) static void map_table(void)
{
	const char *path = getenv("AGENTKERNEL_FAULT_COUNTS");
	const char *fault = getenv("AGENTKERNEL_FAULT");
	int fd = -1;

	if (!path && !fault)
		return;
	if (path) {
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			refuse("no file for the counts");
		(void)strncat(counts_variable, path, sizeof(counts_variable) / 2);
	}
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
		     MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (fd >= 0)
		(void)close(fd);
	if (table == MAP_FAILED)
		refuse("no memory for the counts");
	if (fault && atomic_load(&table->state) == TABLE_FRESH)
		arm(fault);
}

/* Another process may be writing the same name right now. */
static bool is_named(struct point *p, const char *name)
{
	unsigned expected = SLOT_EMPTY;

	if (atomic_compare_exchange_strong(&p->state_of_slot, &expected, SLOT_BEING_NAMED)) {
		(void)strcpy(p->name, name);
		atomic_store(&p->state_of_slot, SLOT_NAMED);
	}
	for (unsigned i = 0; i < PATIENCE && atomic_load(&p->state_of_slot) != SLOT_NAMED; i++)
		continue;
	return strcmp(p->name, name) == 0;
}

static unsigned count(const char *name)
{
	unsigned hash = 5381;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	for (unsigned i = 0; i < POINTS_MAX; i++) {
		struct point *p = &table->points[(hash + i) % POINTS_MAX];

		if (is_named(p, name))
			return atomic_fetch_add(&p->count, 1) + 1;
	}
	return 0;
}

bool fault_strikes(const char *file, const char *call)
{
	char name[NAME_MAX_BYTES];
	int kept = errno, error;

	if (!table || atomic_load(&table->state) == TABLE_OFF)
		return false;
	(void)snprintf(name, sizeof(name), "%.*s.%s", (int)strcspn(file, "."), file, call);
	error = error_of(name);
	if (error == 0) {
		errno = kept;
		return false;
	}
	if (count(name) != table->nth || strcmp(name, table->name) != 0 ||
	    atomic_load(&table->state) != TABLE_ARMED) {
		errno = kept;
		return false;
	}
	atomic_fetch_add(&table->strikes, 1);
	errno = table->error ? table->error : error;
	return true;
}

/* May run in a child that shares our memory: allocates nothing. */
char *const *fault_environment(const char *path, char *const *environ_list)
{
	static char *list[ENVIRONMENT_MAX];
	const char *slash = strrchr(path, '/');
	size_t n = 0;

	if (!table || strchr(counts_variable, '=')[1] == '\0' || !slash ||
	    (strcmp(path, "/proc/self/exe") != 0 && strncmp(slash + 1, "agentkernel", 11) != 0))
		return environ_list;
	for (; environ_list && *environ_list && n < ENVIRONMENT_MAX - 2; environ_list++)
		if (strncmp(*environ_list, "AGENTKERNEL_FAULT", 17) != 0)
			list[n++] = *environ_list;
	list[n++] = counts_variable;
	list[n] = NULL;
	return list;
}
