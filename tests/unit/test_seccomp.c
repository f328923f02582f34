/*
 * test_seccomp - the generated filters, interpreted here instruction by instruction.
 *
 * In a sandbox many refused calls would also fail for lack of capabilities; here only the filter's
 * own result counts.
 */
#include "unit.h"

#include "sandbox/seccomp.h"
#include "seccomp_bpf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif

#define ALLOWED SECCOMP_RET_ALLOW
#define REFUSED(error) (SECCOMP_RET_ERRNO | (error))

/* Just what the compiler emits. */
static uint32_t run_code(const struct sock_filter *code, unsigned count,
			 const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (unsigned pc = 0; pc < count; pc++) {
		const struct sock_filter *i = &code[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(i->k + 4 <= sizeof(*data) && i->k % 4 == 0);
			memcpy(&a, (const char *)data + i->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("instruction 0x%x is not one of ours", i->code);
		}
	}
	fail_msg("the program runs off its end");
	return 0;
}

static uint32_t run_filter(unsigned variant, const struct seccomp_data *data)
{
	return run_code(seccomp_bpf[variant].code, seccomp_bpf[variant].count, data);
}

static uint32_t ask(unsigned variant, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	const struct seccomp_data data = { .nr = (int)nr, .arch = NATIVE, .args = { a, b, c, d } };

	return run_filter(variant, &data);
}

static void every_variant_lets_ordinary_calls_pass(void **state)
{
	static const long ordinary[] = { SYS_read,       SYS_write,  SYS_mmap,  SYS_execve,
					 SYS_exit_group, SYS_futex,  SYS_statx, SYS_wait4,
					 SYS_kill,       SYS_connect };

	(void)state;
	for (unsigned variant = 0; variant < SECCOMP_VARIANT_COUNT; variant++)
		for (size_t i = 0; i < COUNT_OF(ordinary); i++)
			assert_int_equal(ask(variant, ordinary[i], 0, 0, 0, 0), ALLOWED);
}

static void every_variant_refuses_what_is_dangerous(void **state)
{
	static const long dangerous[] = {
		SYS_mount,
		SYS_umount2,
		SYS_pivot_root,
		SYS_move_mount,
		SYS_open_tree,
		SYS_fsopen,
		SYS_fsconfig,
		SYS_fsmount,
		SYS_fspick,
		SYS_setns,
		SYS_bpf,
		SYS_perf_event_open,
		SYS_userfaultfd,
		SYS_io_uring_setup,
		SYS_io_uring_enter,
		SYS_io_uring_register,
		SYS_keyctl,
		SYS_add_key,
		SYS_request_key,
		SYS_init_module,
		SYS_finit_module,
		SYS_delete_module,
		SYS_kexec_load,
		SYS_reboot,
		SYS_swapon,
		SYS_swapoff,
		SYS_acct,
		SYS_syslog,
		SYS_settimeofday,
		SYS_clock_settime,
		SYS_sethostname,
		SYS_setdomainname,
		SYS_quotactl,
		SYS_open_by_handle_at,
		SYS_fanotify_init,
		SYS_kcmp,
		SYS_pidfd_getfd,
		SYS_migrate_pages,
		SYS_move_pages,
		SYS_vhangup,
	};

	(void)state;
	for (unsigned variant = 0; variant < SECCOMP_VARIANT_COUNT; variant++)
		for (size_t i = 0; i < COUNT_OF(dangerous); i++)
			assert_int_equal(ask(variant, dangerous[i], 0, 0, 0, 0), REFUSED(EPERM));
}

static void unknown_numbers_do_not_exist(void **state)
{
	static const long unknown[] = { 1023, 1024, 5000, 0x40000000, 0x40000000 | SYS_getpid, -1 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(unknown); i++)
		assert_int_equal(ask(0, unknown[i], 0, 0, 0, 0), REFUSED(ENOSYS));
	assert_int_equal(ask(0, SYS_clone3, 0, 0, 0, 0), REFUSED(ENOSYS));
}

static void another_architecture_is_killed(void **state)
{
	const struct seccomp_data data = { .nr = SYS_read, .arch = AUDIT_ARCH_I386 };

	(void)state;
	for (unsigned variant = 0; variant < SECCOMP_VARIANT_COUNT; variant++)
		assert_int_equal(run_filter(variant, &data), SECCOMP_RET_KILL_PROCESS);
}

static void namespace_flags_are_seen_in_any_company(void **state)
{
	static const uint64_t flags[] = { CLONE_NEWNS,  CLONE_NEWUTS, CLONE_NEWIPC,   CLONE_NEWUSER,
					  CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		assert_int_equal(ask(0, SYS_clone, flags[i] | 17, 0, 0, 0), REFUSED(EPERM));
		assert_int_equal(ask(0, SYS_unshare, flags[i] | CLONE_FS, 0, 0, 0), REFUSED(EPERM));
		assert_int_equal(ask(0, SYS_clone, flags[i] | 0xdead00000000, 0, 0, 0),
				 REFUSED(EPERM));
	}
	assert_int_equal(ask(0, SYS_clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, 0, 0, 0),
			 ALLOWED);
	assert_int_equal(ask(0, SYS_unshare, CLONE_FILES, 0, 0, 0), ALLOWED);
}

static void only_the_low_half_of_an_ioctl_counts(void **state)
{
	(void)state;
	assert_int_equal(ask(0, SYS_ioctl, 0, TIOCSTI, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_ioctl, 0, 0x100000000 | TIOCSTI, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_ioctl, 0, TIOCLINUX, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_ioctl, 0, TIOCSETD, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_ioctl, 0, TIOCGWINSZ, 0, 0), ALLOWED);
}

static void sockets_are_ordinary(void **state)
{
	(void)state;
	assert_int_equal(ask(0, SYS_socket, AF_UNIX, SOCK_SEQPACKET, 0, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 6, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_socket, AF_INET6, SOCK_DGRAM, 17, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_socket, AF_INET, SOCK_RAW, 1, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_socket, AF_INET, SOCK_STREAM, 132, 0),
			 REFUSED(EPROTONOSUPPORT));
	assert_int_equal(ask(0, SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_socket, AF_NETLINK, SOCK_RAW, 12, 0), REFUSED(EPROTONOSUPPORT));
	for (uint64_t family = 3; family < 64; family++)
		if (family != AF_INET6 && family != AF_NETLINK)
			assert_int_equal(ask(0, SYS_socket, family, SOCK_STREAM, 0, 0),
					 REFUSED(EAFNOSUPPORT));
}

static void set_id_bits_are_refused_only_where_asked(void **state)
{
	const unsigned v = SECCOMP_NO_SET_ID;

	(void)state;
	assert_int_equal(ask(v, SYS_fchmod, 1, 04755, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(v, SYS_fchmod, 1, 02755, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(v, SYS_fchmod, 1, 01755, 0, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_fchmod, 1, 04755, 0, 0), ALLOWED);
	assert_int_equal(ask(v, SYS_fchmodat, 0, 0, 04755, 0), REFUSED(EPERM));
	assert_int_equal(ask(v, 452, 0, 0, 04755, 0), REFUSED(EPERM)); /* fchmodat2 */
	assert_int_equal(ask(v, SYS_openat, 0, 0, O_CREAT, 04755), REFUSED(EPERM));
	assert_int_equal(ask(v, SYS_openat, 0, 0, O_TMPFILE | O_WRONLY, 04755), REFUSED(EPERM));
	assert_int_equal(ask(v, SYS_openat, 0, 0, O_RDONLY, 04755),
			 ALLOWED); /* the mode is ignored */
	assert_int_equal(ask(v, SYS_mknodat, 0, 0, 04755, 0), REFUSED(EPERM));
	assert_int_equal(ask(v, SYS_openat2, 0, 0, 0, 0), REFUSED(ENOSYS));
}

static void a_file_is_cut_off_only_by_who_may_write_it(void **state)
{
	(void)state;
	assert_int_equal(ask(0, SYS_truncate, 0, 0, 0, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_openat, 0, 0, O_TRUNC, 0), ALLOWED);
	for (unsigned v = SECCOMP_NO_CUTTING; v < SECCOMP_VARIANT_COUNT; v++) {
		if (!(v & SECCOMP_NO_CUTTING))
			continue;
		assert_int_equal(ask(v, SYS_truncate, 0, 0, 0, 0), REFUSED(EPERM));
		assert_int_equal(ask(v, SYS_openat2, 0, 0, 0, 0), REFUSED(ENOSYS));
		assert_int_equal(ask(v, SYS_openat, 0, 0, O_TRUNC, 0), REFUSED(EPERM));
		assert_int_equal(ask(v, SYS_openat, 0, 0, O_TRUNC | 3, 0), REFUSED(EPERM));
		assert_int_equal(ask(v, SYS_openat, 0, 0, O_TRUNC | O_CREAT, 0), REFUSED(EPERM));
		assert_int_equal(ask(v, SYS_openat, 0, 0, O_TRUNC | O_WRONLY, 0), ALLOWED);
		assert_int_equal(ask(v, SYS_openat, 0, 0, O_TRUNC | O_RDWR, 0), ALLOWED);
		assert_int_equal(ask(v, SYS_openat, 0, 0, O_RDONLY, 0), ALLOWED);
		assert_int_equal(ask(v, SYS_ftruncate, 0, 0, 0, 0), ALLOWED);
	}
}

static void the_other_variants_do_what_they_say(void **state)
{
	(void)state;
	assert_int_equal(ask(0, SYS_ptrace, 0, 0, 0, 0), ALLOWED);
	assert_int_equal(ask(SECCOMP_STRICT, SYS_ptrace, 0, 0, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(SECCOMP_STRICT, SYS_chroot, 0, 0, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_sched_setaffinity, 0, 0, 0, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_sched_setaffinity, 1, 0, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(SECCOMP_PINNED, SYS_sched_setaffinity, 0, 0, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_prlimit64, 0, 0, 0, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_prlimit64, 1, 0, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_setpriority, PRIO_PROCESS, 0, 19, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_setpriority, PRIO_PROCESS, 1, 19, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_setpriority, PRIO_USER, 0, 19, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_ioprio_set, 1, 0, 0, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_ioprio_set, 1, 1, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_ioprio_set, 3, 0, 0, 0), REFUSED(EPERM));
	assert_int_equal(ask(0, SYS_personality, 0xffffffff, 0, 0, 0), ALLOWED);
	assert_int_equal(ask(0, SYS_personality, 0x0400000, 0, 0, 0), REFUSED(EPERM));
}

/* The kernel runs every filter; what is not "allow" wins, of two errors the one installed last. */
static uint32_t ask_after_mounting(unsigned variant, const struct seccomp_data *data)
{
	struct sock_filter code[SECCOMP_END_MOUNTING_MAX];
	unsigned count = seccomp_format_end_mounting(variant, code);
	uint32_t first = run_filter(variant | SECCOMP_MOUNTING, data);
	uint32_t last = run_code(code, count, data);

	return first == SECCOMP_RET_KILL_PROCESS || last == ALLOWED ? first : last;
}

static void what_may_mount_may_do_nothing_else_and_not_for_long(void **state)
{
	static const uint64_t arguments[] = {
		0, 1, 2, 04755, CLONE_NEWNS, O_TRUNC, TIOCSTI, ~0ull
	};

	(void)state;
	for (unsigned v = 0; v < SECCOMP_VARIANT_COUNT; v++)
		for (int nr = -1; nr < 1100; nr++)
			for (size_t i = 0; i < COUNT_OF(arguments); i++) {
				uint64_t a = arguments[i];
				const struct seccomp_data data = { .nr = nr,
								   .arch = NATIVE,
								   .args = { a, a, a, a } };
				const struct seccomp_data foreign = { .nr = nr,
								      .arch = AUDIT_ARCH_I386 };

				assert_int_equal(ask_after_mounting(v, &data),
						 run_filter(v, &data));
				assert_int_equal(ask_after_mounting(v, &foreign),
						 SECCOMP_RET_KILL_PROCESS);
			}
	for (unsigned v = 0; v < SECCOMP_VARIANT_COUNT; v++) {
		static const long mounting[] = { SYS_open_tree, SYS_move_mount, SYS_mount_setattr,
						 SYS_fsopen,    SYS_fsconfig,   SYS_fsmount,
						 SYS_umount2,   SYS_pivot_root, SYS_openat2 };

		for (int nr = 0; nr < 1100; nr++) {
			bool mounts = false;

			for (size_t i = 0; i < COUNT_OF(mounting); i++)
				mounts = mounts || mounting[i] == nr;
			assert_int_equal(ask(v | SECCOMP_MOUNTING, nr, 0, 0, 0, 0),
					 mounts ? ALLOWED : ask(v, nr, 0, 0, 0, 0));
		}
	}
}

static void with_one_owner_giving_files_away_succeeds_and_does_nothing(void **state)
{
	const unsigned one = SECCOMP_ONE_OWNER;
	const uint64_t keep = (uint32_t)-1;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		const long nr = (const long[]){ SYS_chown, SYS_lchown, SYS_fchown }[i];

		assert_int_equal(ask(one, nr, 0, 1234, 0, 0), REFUSED(0));
		assert_int_equal(ask(one, nr, 0, 0, 1234, 0), REFUSED(0));
		assert_int_equal(ask(one, nr, 0, keep, 1234, 0), REFUSED(0));
		assert_int_equal(ask(one, nr, 0, 0, 0, 0), ALLOWED);
		assert_int_equal(ask(one, nr, 0, keep, 0, 0), ALLOWED);
		assert_int_equal(ask(one, nr, 0, keep, keep, 0), ALLOWED);
		assert_int_equal(ask(0, nr, 0, 1234, 1234, 0), ALLOWED);
	}
	assert_int_equal(ask(one, SYS_fchownat, 0, 0, 1234, 0), REFUSED(0));
	assert_int_equal(ask(one, SYS_fchownat, 0, 0, 0, 1234), REFUSED(0));
	assert_int_equal(ask(one, SYS_fchownat, 0, 1234, 0, keep), ALLOWED);
	assert_int_equal(ask(0, SYS_fchownat, 0, 0, 1234, 1234), ALLOWED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_variant_lets_ordinary_calls_pass),
		cmocka_unit_test(every_variant_refuses_what_is_dangerous),
		cmocka_unit_test(unknown_numbers_do_not_exist),
		cmocka_unit_test(another_architecture_is_killed),
		cmocka_unit_test(namespace_flags_are_seen_in_any_company),
		cmocka_unit_test(only_the_low_half_of_an_ioctl_counts),
		cmocka_unit_test(sockets_are_ordinary),
		cmocka_unit_test(set_id_bits_are_refused_only_where_asked),
		cmocka_unit_test(a_file_is_cut_off_only_by_who_may_write_it),
		cmocka_unit_test(the_other_variants_do_what_they_say),
		cmocka_unit_test(what_may_mount_may_do_nothing_else_and_not_for_long),
		cmocka_unit_test(with_one_owner_giving_files_away_succeeds_and_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
