/*
 * seccomp_rules - the system calls that a sandbox may make.
 *
 * An allowlist: calls not named here fail with ENOSYS; io_setup and its family are left out because
 * their contexts are counted for the whole machine. Known calls that are refused on purpose fail
 * with EPERM, which programs handle better: new namespaces, everything that mounts, kernel
 * keyrings, bpf, perf, io_uring (its operations bypass this filter), userfaultfd, opening files by
 * handle, modules, clocks, calls of other kernels, and address families that only widen the attack
 * surface.
 *
 * Arguments are compared on their low 32 bits, as the kernel itself reads them: an int argument
 * with garbage in its high half must not bypass a check.
 */
#include "base/callfilter.h"
#include "sandbox/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)
#define SET_ID_BITS (S_ISUID | S_ISGID)
#define ACCESS_MODE 3         /* O_ACCMODE, which some C libraries define wider */
#define TMPFILE_BIT 020000000 /* O_TMPFILE without the O_DIRECTORY that it includes */

/* clone3 passes its flags behind a pointer; it fails with ENOSYS below, so programs use clone(). */
static const struct rule_step clone_steps[] = { ALLOW_IF_CLEAR(0, NEW_NAMESPACES) };
static const struct rule_step unshare_steps[] = {
	ALLOW_IF_CLEAR(0, NEW_NAMESPACES | CLONE_NEWTIME),
};

static const struct rule_step ioctl_steps[] = {
	REFUSE_IF(1, TIOCSTI),   /* injects input into a terminal */
	REFUSE_IF(1, TIOCLINUX), /* pastes into a console */
	REFUSE_IF(1, TIOCCONS),  /* takes over console output */
	REFUSE_IF(1, TIOCSETD),  /* loads line disciplines, which have had many kernel bugs */
	ELSE_ALLOW,
};

static const struct rule_step socket_steps[] = {
	/* 0 */ ALLOW_IF(0, AF_UNIX),
	/* 1 */ { 0, ALL, AF_NETLINK, STEP_GOTO, STEP_NEXT, .go_to = 10 },
	/* 2 */ { 0, ALL, AF_INET, STEP_GOTO, STEP_NEXT, .go_to = 4 },
	/* 3 */ { 0, ALL, AF_INET6, STEP_NEXT, STEP_FAIL, .error = EAFNOSUPPORT },
	/* 4 */ { 1, 0xf, SOCK_STREAM, STEP_GOTO, STEP_NEXT, .go_to = 6 },
	/* 5 */ { 1, 0xf, SOCK_DGRAM, STEP_NEXT, STEP_FAIL, .error = EPERM },
	/* 6 */ ALLOW_IF(2, 0),
	/* 7 */ ALLOW_IF(2, IPPROTO_TCP),
	/* 8 */ ALLOW_IF(2, IPPROTO_UDP),
	/* 9 */ ELSE_FAIL(EPROTONOSUPPORT),
	/* 10 */ ALLOW_IF(2, NETLINK_ROUTE),
	/* 11 */ ALLOW_IF(2, NETLINK_SOCK_DIAG), /* ss: sockets of this network namespace */
	/* 12 */ ELSE_FAIL(EPROTONOSUPPORT),
};

static const struct rule_step socketpair_steps[] = {
	ALLOW_IF(0, AF_UNIX),
	ELSE_FAIL(EAFNOSUPPORT),
};

static const struct rule_step personality_steps[] = {
	ALLOW_IF(0, PER_LINUX), ALLOW_IF(0, PER_LINUX32),
	ALLOW_IF(0, UNAME26),   ALLOW_IF(0, UNAME26 | PER_LINUX32),
	ALLOW_IF(0, ALL), /* queries the current one */
	ELSE_FAIL(EPERM),
};

/* Our pid 1 has the same user id inside; processes must not change its limits or priority. */
static const struct rule_step not_init_steps[] = { REFUSE_IF(0, 1), ELSE_ALLOW };
/* PRIO_USER would include pid 1, and pid 1 leads the process group 1. */
static const struct rule_step setpriority_steps[] = {
	REFUSE_IF(0, PRIO_USER),
	REFUSE_IF(1, 1),
	ELSE_ALLOW,
};
static const struct rule_step ioprio_set_steps[] = {
	REFUSE_IF(0, IOPRIO_WHO_USER),
	REFUSE_IF(1, 1),
	ELSE_ALLOW,
};

/*
 * With a single id in the namespace the kernel fails every chown to another owner with EINVAL,
 * whatever the file. The filter returns 0 without effect instead, because programs that unpack
 * archives as root (tar, cp -a, rsync, dpkg) would treat the error as their own failure.
 */
#define IF_THERE(argument, next)                                                                   \
	{ argument, ALL, ALL, STEP_GOTO, STEP_NEXT, .go_to = (next) },                             \
	{                                                                                          \
		argument, ALL, 0, STEP_NEXT, STEP_FAIL, .error = 0                                 \
	}
static const struct rule_step chown_steps[] = {
	IF_THERE(1, 2),
	ALLOW_IF(2, ALL),
	ALLOW_IF(2, 0),
	ELSE_FAIL(0),
};
static const struct rule_step fchownat_steps[] = {
	IF_THERE(2, 2),
	ALLOW_IF(3, ALL),
	ALLOW_IF(3, 0),
	ELSE_FAIL(0),
};

/* A set-id file in a host directory would be effective outside too. */
static const struct rule_step mode_in_1_steps[] = { ALLOW_IF_CLEAR(1, SET_ID_BITS) };
static const struct rule_step mode_in_2_steps[] = { ALLOW_IF_CLEAR(2, SET_ID_BITS) };

/* open() truncates even with O_RDONLY; access mode 3 allows neither reading nor writing. */
#define REFUSE_CUTTING(flags)                                                                      \
	{                                                                                          \
		flags,     O_TRUNC | ACCESS_MODE, O_TRUNC | O_RDONLY, STEP_FAIL,                   \
		STEP_NEXT, .error = EPERM                                                          \
	},                                                                                         \
	{                                                                                          \
		flags, O_TRUNC | ACCESS_MODE, O_TRUNC | ACCESS_MODE, STEP_FAIL, STEP_NEXT,         \
			.error = EPERM                                                             \
	}
static const struct rule_step cutting_open_steps[] = { REFUSE_CUTTING(1), ELSE_ALLOW };
static const struct rule_step cutting_openat_steps[] = { REFUSE_CUTTING(2), ELSE_ALLOW };

/* The mode argument of open() is undefined unless a file is created. */
static const struct rule_step open_steps[] = {
	REFUSE_CUTTING(1),
	{ 1, O_CREAT, O_CREAT, STEP_GOTO, STEP_NEXT, .go_to = 4 },
	{ 1, TMPFILE_BIT, TMPFILE_BIT, STEP_NEXT, STEP_ALLOW },
	ALLOW_IF_CLEAR(2, SET_ID_BITS),
};
static const struct rule_step openat_steps[] = {
	REFUSE_CUTTING(2),
	{ 2, O_CREAT, O_CREAT, STEP_GOTO, STEP_NEXT, .go_to = 4 },
	{ 2, TMPFILE_BIT, TMPFILE_BIT, STEP_NEXT, STEP_ALLOW },
	ALLOW_IF_CLEAR(3, SET_ID_BITS),
};

const char callfilter_name[] = "seccomp";
const unsigned callfilter_variant_count = SECCOMP_PROGRAM_COUNT;

const struct rule callfilter_rules[] = {
	/* files */
	ALLOW("read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 lseek "
	      "_llseek"),
	ALLOW("open openat openat2 creat close close_range dup dup2 dup3 fcntl flock"),
	ALLOW("stat fstat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat"),
	ALLOW("statfs fstatfs getcwd chdir fchdir getdents getdents64 umask utime utimes "
	      "utimensat"),
	ALLOW("futimesat rename renameat renameat2 mkdir mkdirat rmdir link linkat unlink "
	      "unlinkat"),
	ALLOW("symlink symlinkat mknod mknodat chmod fchmod fchmodat fchmodat2 chown fchown "
	      "lchown"),
	ALLOW("fchownat truncate ftruncate fallocate fadvise64 readahead copy_file_range sendfile"),
	ALLOW("splice tee vmsplice sync fsync fdatasync syncfs sync_file_range"),
	ALLOW("getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr"),
	ALLOW("flistxattr removexattr lremovexattr fremovexattr name_to_handle_at cachestat "
	      "chroot"),
	ALLOW("inotify_init inotify_init1 inotify_add_watch inotify_rm_watch"),
	/* memory */
	ALLOW("brk mmap munmap mremap mprotect madvise msync mincore mlock mlock2 munlock "
	      "mlockall"),
	ALLOW("munlockall memfd_create membarrier mseal pkey_alloc pkey_free pkey_mprotect"),
	ALLOW("get_mempolicy set_mempolicy set_mempolicy_home_node mbind map_shadow_stack"),
	ALLOW("remap_file_pages process_madvise process_mrelease"),
	/* processes and threads */
	ALLOW("fork vfork execve execveat exit exit_group wait4 waitid set_tid_address"),
	ALLOW("getpid getppid gettid getpgid getpgrp setpgid getsid setsid kill tkill tgkill"),
	ALLOW("pidfd_open pidfd_send_signal prctl arch_prctl seccomp rseq set_robust_list"),
	ALLOW("get_robust_list futex futex_waitv futex_wake futex_wait futex_requeue "
	      "restart_syscall"),
	ALLOW("getpriority ioprio_get sched_yield sched_getaffinity"),
	ALLOW("sched_getparam sched_getscheduler sched_getattr sched_get_priority_max"),
	ALLOW("sched_get_priority_min sched_rr_get_interval getcpu getrlimit setrlimit"),
	ALLOW("getrusage times sysinfo uname getrandom set_thread_area get_thread_area"),
	ALLOW("landlock_create_ruleset landlock_add_rule landlock_restrict_self"),
	ALLOW("ptrace process_vm_readv process_vm_writev"),
	/* identity */
	ALLOW("getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid"),
	ALLOW("setregid setresuid setresgid setfsuid setfsgid setgroups capget capset"),
	/* signals, time, events */
	ALLOW("rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo"),
	ALLOW("rt_tgsigqueueinfo rt_sigsuspend rt_sigreturn sigaltstack pause alarm signalfd"),
	ALLOW("signalfd4 getitimer setitimer timer_create timer_settime timer_gettime"),
	ALLOW("timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime"),
	ALLOW("nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time adjtimex"),
	ALLOW("clock_adjtime poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl"),
	ALLOW("epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 pipe pipe2"),
	/* sockets and System V IPC, both private to the sandbox */
	ALLOW("bind listen accept accept4 connect getsockname getpeername sendto recvfrom sendmsg"),
	ALLOW("recvmsg sendmmsg recvmmsg shutdown setsockopt getsockopt"),
	ALLOW("shmget shmat shmdt shmctl semget semop semctl semtimedop msgget msgsnd msgrcv "
	      "msgctl"),
	ALLOW("mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr"),

	CHECK("clone", clone_steps),
	CHECK("unshare", unshare_steps),
	CHECK("ioctl", ioctl_steps),
	CHECK("socket", socket_steps),
	CHECK("socketpair", socketpair_steps),
	CHECK("personality", personality_steps),
	CHECK("prlimit64 sched_setaffinity sched_setparam sched_setscheduler sched_setattr",
	      not_init_steps),
	CHECK("setpriority", setpriority_steps),
	CHECK("ioprio_set", ioprio_set_steps),

	REFUSE("setns mount umount umount2 pivot_root move_mount open_tree fsopen fsconfig "
	       "fsmount"),
	REFUSE("fspick mount_setattr open_by_handle_at fanotify_init fanotify_mark quotactl"),
	REFUSE("quotactl_fd swapon swapoff acct add_key request_key keyctl bpf perf_event_open"),
	REFUSE("userfaultfd io_uring_setup io_uring_enter io_uring_register init_module"),
	REFUSE("finit_module delete_module kexec_load kexec_file_load reboot syslog iopl ioperm"),
	REFUSE("settimeofday clock_settime stime sethostname setdomainname vhangup lookup_dcookie"),
	REFUSE("modify_ldt vm86 vm86old kcmp pidfd_getfd migrate_pages move_pages uselib "
	       "nfsservctl"),
	REFUSE("memfd_secret"),

	REFUSE_IN(SECCOMP_STRICT, "ptrace process_vm_readv process_vm_writev chroot"),
	REFUSE_IN(SECCOMP_PINNED, "sched_setaffinity"),

	CHECK_IN(SECCOMP_ONE_OWNER, "chown lchown fchown", chown_steps),
	CHECK_IN(SECCOMP_ONE_OWNER, "fchownat", fchownat_steps),

	REFUSE_IN(SECCOMP_NO_CUTTING, "truncate truncate64"),
	CHECK_IN(SECCOMP_NO_CUTTING, "open", cutting_open_steps),
	CHECK_IN(SECCOMP_NO_CUTTING, "openat", cutting_openat_steps),
	{ .names = "openat2", .action = RULE_ENOSYS, .only_in = SECCOMP_NO_CUTTING },

	CHECK_IN(SECCOMP_NO_SET_ID, "chmod fchmod creat mknod", mode_in_1_steps),
	CHECK_IN(SECCOMP_NO_SET_ID, "fchmodat fchmodat2 mknodat", mode_in_2_steps),
	CHECK_IN(SECCOMP_NO_SET_ID, "open", open_steps),
	CHECK_IN(SECCOMP_NO_SET_ID, "openat", openat_steps),
	/* its mode is behind a pointer; libc and language runtimes fall back to openat */
	{ .names = "openat2", .action = RULE_ENOSYS, .only_in = SECCOMP_NO_SET_ID },

	/* init's own, until seccomp_end_mounting() refuses them */
	{ .names = "open_tree move_mount mount_setattr fsopen fsconfig fsmount umount2 pivot_root "
		   "openat2",
	  .action = RULE_ALLOW,
	  .only_in = SECCOMP_MOUNTING },
};

const size_t callfilter_rules_count = sizeof(callfilter_rules) / sizeof(callfilter_rules[0]);
