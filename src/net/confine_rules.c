/*
 * confine_rules - the system calls that the gate may make once it serves.
 *
 * Internet sockets, read-only files, non-executable memory, and exit. No programs, no processes,
 * and of other address families only pairs.
 */
#include "base/callfilter.h"
#include "net/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* c-ares reads /etc/hosts again for each query. */
static const struct rule_step open_steps[] = {
	ALLOW_IF_CLEAR(2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC),
};

static const struct rule_step socket_steps[] = {
	ALLOW_IF(0, AF_INET),
	ALLOW_IF(0, AF_INET6),
	ELSE_FAIL(EAFNOSUPPORT),
};

/* For answers of init (base/dialin.h). */
static const struct rule_step socketpair_steps[] = {
	ALLOW_IF(0, AF_UNIX),
	ELSE_FAIL(EAFNOSUPPORT),
};

/* Other gates share the log: it stays append-only and cannot be duplicated. */
static const struct rule_step fcntl_steps[] = {
	REFUSE_IF(0, GATE_LOG_FD), ALLOW_IF(1, F_GETFL), ALLOW_IF(1, F_SETFL),
	ALLOW_IF(1, F_GETFD),      ALLOW_IF(1, F_SETFD), ALLOW_IF(1, F_GET_SEALS),
	ELSE_FAIL(EPERM),
};

static const struct rule_step no_code_steps[] = { ALLOW_IF_CLEAR(2, PROT_EXEC) };

const char callfilter_name[] = "confine";
const unsigned callfilter_variant_count = 1;

const struct rule callfilter_rules[] = {
	ALLOW("recvfrom sendto recvmsg sendmsg read write readv writev close shutdown accept4"),
	ALLOW("pread64"), /* reads new rules */
	ALLOW("epoll_wait epoll_pwait epoll_ctl epoll_create1 poll ppoll eventfd2 pipe2"),
	ALLOW("connect bind getsockname getpeername setsockopt getsockopt ioctl"),
	ALLOW("brk munmap mremap madvise"),
	ALLOW("stat fstat newfstatat statx lseek access faccessat"),
	ALLOW("clock_gettime gettimeofday time getrandom getpid gettid getuid geteuid getgid"),
	ALLOW("futex rt_sigreturn rt_sigprocmask rt_sigaction sigaltstack restart_syscall"),
	ALLOW("exit exit_group"),
	CHECK("fcntl", fcntl_steps),
	CHECK("openat", open_steps),
	CHECK("socket", socket_steps),
	CHECK("socketpair", socketpair_steps),
	CHECK("mmap mprotect", no_code_steps),
};

const size_t callfilter_rules_count = sizeof(callfilter_rules) / sizeof(callfilter_rules[0]);
