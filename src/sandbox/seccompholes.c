/* seccompholes - test builds: allows groups of system calls; see seccompholes.h. */
#include "sandbox/seccompholes.h"

#ifdef AGENTKERNEL_TESTING

#include "base/cleanup.h"
#include "base/wall.h"

#include <assert.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#define CODE_MAX 4096

#if defined(__x86_64__)
#define NATIVE_AUDIT_ARCH AUDIT_ARCH_X86_64
#else
#define NATIVE_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

static const struct {
	enum wall wall;
	unsigned number;
} calls[] = {
	{ WALL_SECCOMP_NAMESPACES, SYS_clone },
	{ WALL_SECCOMP_NAMESPACES, SYS_clone3 },
	{ WALL_SECCOMP_NAMESPACES, SYS_unshare },
	{ WALL_SECCOMP_NAMESPACES, SYS_setns },
	{ WALL_SECCOMP_MOUNTS, SYS_mount },
	{ WALL_SECCOMP_MOUNTS, SYS_umount2 },
	{ WALL_SECCOMP_MOUNTS, SYS_pivot_root },
	{ WALL_SECCOMP_MOUNTS, SYS_move_mount },
	{ WALL_SECCOMP_MOUNTS, SYS_open_tree },
	{ WALL_SECCOMP_MOUNTS, SYS_fsopen },
	{ WALL_SECCOMP_MOUNTS, SYS_fsconfig },
	{ WALL_SECCOMP_MOUNTS, SYS_fsmount },
	{ WALL_SECCOMP_MOUNTS, SYS_fspick },
	{ WALL_SECCOMP_MOUNTS, SYS_mount_setattr },
	{ WALL_SECCOMP_SOCKETS, SYS_socket },
	{ WALL_SECCOMP_SOCKETS, SYS_socketpair },
	{ WALL_SECCOMP_TERMINALS, SYS_ioctl },
	{ WALL_SECCOMP_KEYS, SYS_add_key },
	{ WALL_SECCOMP_KEYS, SYS_request_key },
	{ WALL_SECCOMP_KEYS, SYS_keyctl },
	{ WALL_SECCOMP_RINGS, SYS_io_uring_setup },
	{ WALL_SECCOMP_RINGS, SYS_io_uring_enter },
	{ WALL_SECCOMP_RINGS, SYS_io_uring_register },
	{ WALL_SECCOMP_RINGS, SYS_io_setup },
	{ WALL_SECCOMP_RINGS, SYS_userfaultfd },
	{ WALL_SECCOMP_KERNEL, SYS_syslog },
	{ WALL_SECCOMP_KERNEL, SYS_bpf },
	{ WALL_SECCOMP_KERNEL, SYS_perf_event_open },
	{ WALL_SECCOMP_KERNEL, SYS_sethostname },
	{ WALL_SECCOMP_KERNEL, SYS_setdomainname },
	{ WALL_SECCOMP_ODD, SYS_personality },
	{ WALL_SECCOMP_ODD, SYS_fanotify_init },
	{ WALL_SECCOMP_ODD, SYS_open_by_handle_at },
	{ WALL_SECCOMP_INIT, SYS_prlimit64 },
	{ WALL_SECCOMP_INIT, SYS_sched_setscheduler },
	{ WALL_SECCOMP_INIT, SYS_sched_setattr },
	{ WALL_SECCOMP_INIT, SYS_sched_setaffinity },
	{ WALL_SECCOMP_INIT, SYS_setpriority },
	{ WALL_SECCOMP_INIT, SYS_ioprio_set },
	{ WALL_SECCOMP_OTHERS, SYS_pidfd_getfd },
	{ WALL_SECCOMP_OTHERS, SYS_kcmp },
	{ WALL_SECCOMP_OTHERS, SYS_migrate_pages },
	{ WALL_SECCOMP_OTHERS, SYS_move_pages },
#if defined(__x86_64__)
	{ WALL_SECCOMP_ODD, SYS_modify_ldt },
#endif
};

struct code {
	struct sock_filter list[CODE_MAX];
	unsigned short count;
};

static void emit(struct code *c, struct sock_filter instruction)
{
	assert(c->count < CODE_MAX);
	c->list[c->count++] = instruction;
}

/* Allows the call if the accumulator equals `value` (or, if `is` is false, differs from it). */
static void emit_allow_if(struct code *c, unsigned value, bool is)
{
	emit(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, is ? 0 : 1,
					     is ? 1 : 0));
	emit(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

static void emit_load(struct code *c, size_t offset)
{
	emit(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

void seccompholes_cut(struct sock_fprog *program)
{
	static struct code c;

	c.count = 0;
	if (!wall_stands(WALL_SECCOMP_ARCHITECTURES)) {
		emit_load(&c, offsetof(struct seccomp_data, arch));
		emit_allow_if(&c, NATIVE_AUDIT_ARCH, false);
	}
	emit_load(&c, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < COUNT_OF(calls); i++)
		if (!wall_stands(calls[i].wall))
			emit_allow_if(&c, calls[i].number, true);
	for (unsigned i = 0; i < program->len; i++)
		emit(&c, program->filter[i]);
	program->len = c.count;
	program->filter = c.list;
}

#endif
