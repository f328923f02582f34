/* seccomp - installs a prebuilt system call filter; see seccomp.h. */
#include "sandbox/seccomp.h"

#include "base/cleanup.h"
#include "base/wall.h"
#include "sandbox/seccompholes.h"
#include "seccomp_bpf.h" /* generated: seccomp_bpf[variant] */

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static_assert(sizeof(seccomp_bpf) / sizeof(seccomp_bpf[0]) == SECCOMP_PROGRAM_COUNT,
	      "the generated programs do not match the variants");

/* What seccomp_rules.c allows with SECCOMP_MOUNTING, and every variant refuses; openat2, which some
 * allow, is one more. */
static const unsigned mounting_calls[] = { SYS_open_tree, SYS_move_mount, SYS_mount_setattr,
					   SYS_fsopen,    SYS_fsconfig,   SYS_fsmount,
					   SYS_umount2,   SYS_pivot_root };

static int install(struct sock_fprog program, struct err *e)
{
	if (!wall_stands(WALL_SECCOMP))
		return 0;
	seccompholes_cut(&program);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return err_sys(e, errno, "install the system call filter");
	return 0;
}

static int install_generated(unsigned index, struct err *e)
{
	return install(
		(struct sock_fprog){ .len = seccomp_bpf[index].count,
				     .filter = (struct sock_filter *)seccomp_bpf[index].code },
		e);
}

int seccomp_install(unsigned variant, struct err *e)
{
	assert(variant < SECCOMP_VARIANT_COUNT);
	return install_generated(variant, e);
}

int seccomp_begin_mounting(unsigned variant, struct err *e)
{
	assert(variant < SECCOMP_VARIANT_COUNT);
	return install_generated(variant | SECCOMP_MOUNTING, e);
}

/* The first filter kills other architectures, whose numbers mean other calls. */
unsigned seccomp_format_end_mounting(unsigned variant,
				     struct sock_filter ret[SECCOMP_END_MOUNTING_MAX])
{
	bool has_openat2 = !(variant & (SECCOMP_NO_SET_ID | SECCOMP_NO_CUTTING));
	unsigned n = 0, calls = COUNT_OF(mounting_calls);

	static_assert(COUNT_OF(mounting_calls) + 5 <= SECCOMP_END_MOUNTING_MAX, "it fits");
	ret[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < calls; i++)
		ret[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, mounting_calls[i], (uint8_t)(calls - i + 1), 0);
	ret[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2,
						has_openat2 ? 0 : 2, 0);
	ret[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	ret[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	ret[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	return n;
}

int seccomp_end_mounting(unsigned variant, struct err *e)
{
	struct sock_filter code[SECCOMP_END_MOUNTING_MAX];
	unsigned count = seccomp_format_end_mounting(variant, code);

	return install((struct sock_fprog){ .len = (unsigned short)count, .filter = code }, e);
}
