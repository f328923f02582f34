/* seccomp - installs a prebuilt system call filter; see seccomp.h. */
#include "sandbox/seccomp.h"

#include "base/wall.h"
#include "sandbox/seccompholes.h"
#include "seccomp_bpf.h" /* generated: seccomp_bpf[variant] */

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

static_assert(sizeof(seccomp_bpf) / sizeof(seccomp_bpf[0]) == SECCOMP_VARIANT_COUNT,
	      "the generated programs do not match the variants");

int seccomp_install(unsigned variant, struct err *e)
{
	struct sock_fprog program = { 0 };

	if (!wall_stands(WALL_SECCOMP))
		return 0;
	assert(variant < SECCOMP_VARIANT_COUNT);
	program.len = seccomp_bpf[variant].count;
	program.filter = (struct sock_filter *)seccomp_bpf[variant].code;
	seccompholes_cut(&program);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return err_sys(e, errno, "install the system call filter");
	return 0;
}
