/*
 * layer_rules - the system calls that the process that unpacks a layer may make.
 *
 * Reading open descriptors, files beneath a directory (Landlock restricts which), non-executable
 * memory, and exit. No sockets, no programs, no processes, and no devices except whiteouts.
 */
#include "base/callfilter.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* A whiteout is the device 0:0. */
static const struct rule_step make_steps[] = {
	{ 2, S_IFMT, S_IFIFO, STEP_ALLOW, STEP_NEXT },
	{ 2, S_IFMT, S_IFCHR, STEP_NEXT, STEP_FAIL, .error = EPERM },
	{ 3, ALL, 0, STEP_ALLOW, STEP_FAIL, .error = EPERM },
};

/* readdir() queries the flags of its descriptor. */
static const struct rule_step fcntl_steps[] = {
	ALLOW_IF(1, F_GETFL),
	ALLOW_IF(1, F_GETFD),
	ALLOW_IF(1, F_SETFD),
	ELSE_FAIL(EPERM),
};

static const struct rule_step no_code_steps[] = { ALLOW_IF_CLEAR(2, PROT_EXEC) };

const char callfilter_name[] = "layer";
const unsigned callfilter_variant_count = 1;

const struct rule callfilter_rules[] = {
	ALLOW("read pread64 readv write pwrite64 writev lseek ftruncate close"),
	ALLOW("openat openat2 stat fstat fstatfs newfstatat statx getdents64"),
	ALLOW("mkdirat symlinkat readlinkat linkat unlinkat"),
	ALLOW("fchmod fchmodat fchown fchownat utimensat umask"),
	ALLOW("fsetxattr fgetxattr flistxattr"),
	ALLOW("brk munmap mremap madvise"),
	ALLOW("clock_gettime gettimeofday getrandom getpid gettid getuid geteuid getgid getegid"),
	ALLOW("futex rt_sigreturn rt_sigprocmask rt_sigaction sigaltstack restart_syscall"),
	ALLOW("exit exit_group"),
	CHECK("mknodat", make_steps),
	CHECK("fcntl", fcntl_steps),
	CHECK("mmap mprotect", no_code_steps),
};

const size_t callfilter_rules_count = sizeof(callfilter_rules) / sizeof(callfilter_rules[0]);
