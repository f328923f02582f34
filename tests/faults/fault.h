#pragma once
/*
 * fault - makes any system call of our sources fail, by name.
 *
 * `make TESTING=1` includes this header before every source of ours (-include). It includes the
 * system's declarations first and then replaces each call by a macro of the same name, which asks
 * fault_strikes() before it calls. The sources need no change.
 *
 *   AGENTKERNEL_FAULT=record.renameat:2          the second renameat() that record.c makes fails
 *   AGENTKERNEL_FAULT=record.renameat:2=EDQUOT   with this error, not the one in fault.c's table
 *   AGENTKERNEL_FAULT_COUNTS=FILE                counts over all processes of one operation
 *
 * A point is a file and a call: "record.renameat". Calls by number have their own name: "openat2".
 * Calls that cannot fail, or whose failure nobody could see (close), are omitted.
 *
 * Calls of libraries are not covered. If a source has a member or a function with a call's name, or
 * needs a header that conflicts with others, the Makefile defines a FAULT_ macro for it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>

/* True, with errno set, if this call in this file must fail. */
bool fault_strikes(const char *file, const char *call);
/* For a program of ours: this environment plus the path of the counts. */
char *const *fault_environment(const char *path, char *const *environ_list);

#define FAULT(call) fault_strikes(__FILE_NAME__, call)

/* By number: "SYS_openat2" is the point "openat2". */
#define syscall(number, ...) (FAULT(&#number[4]) ? -1l : syscall(number __VA_OPT__(, ) __VA_ARGS__))

/* Files. */
#define access(...) (FAULT("access") ? -1 : access(__VA_ARGS__))
#define chdir(...) (FAULT("chdir") ? -1 : chdir(__VA_ARGS__))
#define chmod(...) (FAULT("chmod") ? -1 : chmod(__VA_ARGS__))
#define chown(...) (FAULT("chown") ? -1 : chown(__VA_ARGS__))
#define chroot(...) (FAULT("chroot") ? -1 : chroot(__VA_ARGS__))
#define copy_file_range(...) (FAULT("copy_file_range") ? -1 : copy_file_range(__VA_ARGS__))
#define dup(...) (FAULT("dup") ? -1 : dup(__VA_ARGS__))
#define dup2(...) (FAULT("dup2") ? -1 : dup2(__VA_ARGS__))
#define dup3(...) (FAULT("dup3") ? -1 : dup3(__VA_ARGS__))
#define faccessat(...) (FAULT("faccessat") ? -1 : faccessat(__VA_ARGS__))
#define fchdir(...) (FAULT("fchdir") ? -1 : fchdir(__VA_ARGS__))
#define fchmod(...) (FAULT("fchmod") ? -1 : fchmod(__VA_ARGS__))
#define fchmodat(...) (FAULT("fchmodat") ? -1 : fchmodat(__VA_ARGS__))
#define fchown(...) (FAULT("fchown") ? -1 : fchown(__VA_ARGS__))
#define fchownat(...) (FAULT("fchownat") ? -1 : fchownat(__VA_ARGS__))
#define fcntl(...) (FAULT("fcntl") ? -1 : fcntl(__VA_ARGS__))
#define fdopen(...) (FAULT("fdopen") ? NULL : fdopen(__VA_ARGS__))
#define fdopendir(...) (FAULT("fdopendir") ? NULL : fdopendir(__VA_ARGS__))
#define fgetxattr(...) (FAULT("fgetxattr") ? -1 : fgetxattr(__VA_ARGS__))
#define flistxattr(...) (FAULT("flistxattr") ? -1 : flistxattr(__VA_ARGS__))
#define flock(...) (FAULT("flock") ? -1 : flock(__VA_ARGS__))
#define fremovexattr(...) (FAULT("fremovexattr") ? -1 : fremovexattr(__VA_ARGS__))
#define fsetxattr(...) (FAULT("fsetxattr") ? -1 : fsetxattr(__VA_ARGS__))
#define fstat(...) (FAULT("fstat") ? -1 : fstat(__VA_ARGS__))
#define fstatat(...) (FAULT("fstatat") ? -1 : fstatat(__VA_ARGS__))
#define fstatfs(...) (FAULT("fstatfs") ? -1 : fstatfs(__VA_ARGS__))
#define fstatvfs(...) (FAULT("fstatvfs") ? -1 : fstatvfs(__VA_ARGS__))
#define fsync(...) (FAULT("fsync") ? -1 : fsync(__VA_ARGS__))
#define ftruncate(...) (FAULT("ftruncate") ? -1 : ftruncate(__VA_ARGS__))
#define futimens(...) (FAULT("futimens") ? -1 : futimens(__VA_ARGS__))
#define getcwd(...) (FAULT("getcwd") ? NULL : getcwd(__VA_ARGS__))
#define inotify_add_watch(...) (FAULT("inotify_add_watch") ? -1 : inotify_add_watch(__VA_ARGS__))
#define inotify_init1(...) (FAULT("inotify_init1") ? -1 : inotify_init1(__VA_ARGS__))
#define ioctl(...) (FAULT("ioctl") ? -1 : ioctl(__VA_ARGS__))
#define lgetxattr(...) (FAULT("lgetxattr") ? -1 : lgetxattr(__VA_ARGS__))
#define linkat(...) (FAULT("linkat") ? -1 : linkat(__VA_ARGS__))
#define lseek(...) (FAULT("lseek") ? -1 : lseek(__VA_ARGS__))
#define lstat(...) (FAULT("lstat") ? -1 : lstat(__VA_ARGS__))
#define memfd_create(...) (FAULT("memfd_create") ? -1 : memfd_create(__VA_ARGS__))
#define mkdir(...) (FAULT("mkdir") ? -1 : mkdir(__VA_ARGS__))
#define mkdirat(...) (FAULT("mkdirat") ? -1 : mkdirat(__VA_ARGS__))
#define mknodat(...) (FAULT("mknodat") ? -1 : mknodat(__VA_ARGS__))
#define mkostemp(...) (FAULT("mkostemp") ? -1 : mkostemp(__VA_ARGS__))
#define open(...) (FAULT("open") ? -1 : open(__VA_ARGS__))
#define openat(...) (FAULT("openat") ? -1 : openat(__VA_ARGS__))
#define opendir(...) (FAULT("opendir") ? NULL : opendir(__VA_ARGS__))
#define pread(...) (FAULT("pread") ? -1 : pread(__VA_ARGS__))
#define pwrite(...) (FAULT("pwrite") ? -1 : pwrite(__VA_ARGS__))
#define read(...) (FAULT("read") ? -1 : read(__VA_ARGS__))
#define readdir(...) (FAULT("readdir") ? NULL : readdir(__VA_ARGS__))
#define readlink(...) (FAULT("readlink") ? -1 : readlink(__VA_ARGS__))
#define readlinkat(...) (FAULT("readlinkat") ? -1 : readlinkat(__VA_ARGS__))
#define realpath(...) (FAULT("realpath") ? NULL : realpath(__VA_ARGS__))
#define rename(...) (FAULT("rename") ? -1 : rename(__VA_ARGS__))
#define renameat(...) (FAULT("renameat") ? -1 : renameat(__VA_ARGS__))
#define stat(...) (FAULT("stat") ? -1 : stat(__VA_ARGS__))
#define statfs(...) (FAULT("statfs") ? -1 : statfs(__VA_ARGS__))
#define statvfs(...) (FAULT("statvfs") ? -1 : statvfs(__VA_ARGS__))
#define symlink(...) (FAULT("symlink") ? -1 : symlink(__VA_ARGS__))
#define symlinkat(...) (FAULT("symlinkat") ? -1 : symlinkat(__VA_ARGS__))
#define syncfs(...) (FAULT("syncfs") ? -1 : syncfs(__VA_ARGS__))
#define unlink(...) (FAULT("unlink") ? -1 : unlink(__VA_ARGS__))
#define unlinkat(...) (FAULT("unlinkat") ? -1 : unlinkat(__VA_ARGS__))
#define utimensat(...) (FAULT("utimensat") ? -1 : utimensat(__VA_ARGS__))
#define write(...) (FAULT("write") ? -1 : write(__VA_ARGS__))
#define writev(...) (FAULT("writev") ? -1 : writev(__VA_ARGS__))

/* Between processes. */
#define accept4(...) (FAULT("accept4") ? -1 : accept4(__VA_ARGS__))
#define bind(...) (FAULT("bind") ? -1 : bind(__VA_ARGS__))
#define connect(...) (FAULT("connect") ? -1 : connect(__VA_ARGS__))
#define getsockname(...) (FAULT("getsockname") ? -1 : getsockname(__VA_ARGS__))
#define getsockopt(...) (FAULT("getsockopt") ? -1 : getsockopt(__VA_ARGS__))
#define listen(...) (FAULT("listen") ? -1 : listen(__VA_ARGS__))
#define pipe2(...) (FAULT("pipe2") ? -1 : pipe2(__VA_ARGS__))
#define poll(...) (FAULT("poll") ? -1 : poll(__VA_ARGS__))
#define recv(...) (FAULT("recv") ? -1 : recv(__VA_ARGS__))
#define recvmsg(...) (FAULT("recvmsg") ? -1 : recvmsg(__VA_ARGS__))
#define send(...) (FAULT("send") ? -1 : send(__VA_ARGS__))
#define sendmsg(...) (FAULT("sendmsg") ? -1 : sendmsg(__VA_ARGS__))
#define setsockopt(...) (FAULT("setsockopt") ? -1 : setsockopt(__VA_ARGS__))
#define signalfd(...) (FAULT("signalfd") ? -1 : signalfd(__VA_ARGS__))
#define socket(...) (FAULT("socket") ? -1 : socket(__VA_ARGS__))
#define socketpair(...) (FAULT("socketpair") ? -1 : socketpair(__VA_ARGS__))
#define tcgetattr(...) (FAULT("tcgetattr") ? -1 : tcgetattr(__VA_ARGS__))
#define tcsetattr(...) (FAULT("tcsetattr") ? -1 : tcsetattr(__VA_ARGS__))

/* Processes, and what they may do. */
#define clone(...) (FAULT("clone") ? -1 : clone(__VA_ARGS__))
#define execve(path, argv, environ_list)                                                           \
	(FAULT("execve") ? -1 : execve(path, argv, fault_environment(path, environ_list)))
#define fexecve(fd, argv, environ_list)                                                            \
	(FAULT("fexecve") ? -1                                                                     \
			  : fexecve(fd, argv, fault_environment("/proc/self/exe", environ_list)))
#define fork() (FAULT("fork") ? -1 : fork())
#define getgroups(...) (FAULT("getgroups") ? -1 : getgroups(__VA_ARGS__))
#define getrandom(...) (FAULT("getrandom") ? -1 : getrandom(__VA_ARGS__))
#define getrlimit(...) (FAULT("getrlimit") ? -1 : getrlimit(__VA_ARGS__))
#define kill(...) (FAULT("kill") ? -1 : kill(__VA_ARGS__))
#define prctl(...) (FAULT("prctl") ? -1 : prctl(__VA_ARGS__))
#define sched_getaffinity(...) (FAULT("sched_getaffinity") ? -1 : sched_getaffinity(__VA_ARGS__))
#define sched_setaffinity(...) (FAULT("sched_setaffinity") ? -1 : sched_setaffinity(__VA_ARGS__))
#define setgroups(...) (FAULT("setgroups") ? -1 : setgroups(__VA_ARGS__))
#define sethostname(...) (FAULT("sethostname") ? -1 : sethostname(__VA_ARGS__))
#define setns(...) (FAULT("setns") ? -1 : setns(__VA_ARGS__))
#define setpgid(...) (FAULT("setpgid") ? -1 : setpgid(__VA_ARGS__))
#define setresgid(...) (FAULT("setresgid") ? -1 : setresgid(__VA_ARGS__))
#define setresuid(...) (FAULT("setresuid") ? -1 : setresuid(__VA_ARGS__))
#define setrlimit(...) (FAULT("setrlimit") ? -1 : setrlimit(__VA_ARGS__))
#define setsid() (FAULT("setsid") ? -1 : setsid())
#define unshare(...) (FAULT("unshare") ? -1 : unshare(__VA_ARGS__))
#define vfork() (FAULT("vfork") ? -1 : vfork())
#define wait4(...) (FAULT("wait4") ? -1 : wait4(__VA_ARGS__))
#define waitpid(...) (FAULT("waitpid") ? -1 : waitpid(__VA_ARGS__))
#define posix_spawn(pid, path, actions, attributes, argv, environ_list)                            \
	(FAULT("posix_spawn") ? errno                                                              \
			      : posix_spawn(pid, path, actions, attributes, argv,                  \
					    fault_environment(path, environ_list)))

/* Memory. */
#define calloc(...) (FAULT("calloc") ? NULL : calloc(__VA_ARGS__))
#define malloc(...) (FAULT("malloc") ? NULL : malloc(__VA_ARGS__))
#define mmap(...) (FAULT("mmap") ? MAP_FAILED : mmap(__VA_ARGS__))
#define realloc(...) (FAULT("realloc") ? NULL : realloc(__VA_ARGS__))
#define strndup(...) (FAULT("strndup") ? NULL : strndup(__VA_ARGS__))
#define vasprintf(...) (FAULT("vasprintf") ? -1 : vasprintf(__VA_ARGS__))

#ifdef FAULT_HAS_MOUNT
#include <sys/mount.h>
#define mount(...) (FAULT("mount") ? -1 : mount(__VA_ARGS__))
#endif
#ifdef FAULT_OWN_READ
#undef read
#endif
#ifdef FAULT_OWN_WRITE
#undef write
#endif
