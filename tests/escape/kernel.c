/* kernel - system calls that lead to the kernel's powers or its bugs; see escape.h. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fanotify.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define X32_BIT 0x40000000
#define I386_UNSHARE 310

/* The kernel checks privileges before it looks at the arguments: another error is an escape. */
static void tally_entry(struct tally *t, long result, const char *call)
{
	if (result >= 0 || (errno != EPERM && errno != ENOSYS))
		say_escaped("%s is answered: %s", call, result >= 0 ? "works" : errno_name(errno));
	tally_error(t, errno);
}

static void load_bpf(void)
{
	struct bpf_insn code[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
				   { .code = BPF_JMP | BPF_EXIT } };
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
	};
	union bpf_attr program = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
				   .insns = (uintptr_t)code,
				   .insn_cnt = 2,
				   .license = (uintptr_t) "GPL" };
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map)), "a BPF map");
	tally_result(&t, syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof(program)),
		     "a BPF program");
	tally_say(&t);
}

static void open_perf(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.exclude_kernel = 1 };

	say_result(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0), "perf_event_open");
}

static void open_ring(void)
{
	struct io_uring_params p = { 0 };
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_io_uring_setup, 4, &p), "io_uring");
	tally_entry(&t, syscall(SYS_io_uring_enter, -1, 1, 0, 0, NULL, 0), "io_uring_enter");
	tally_entry(&t, syscall(SYS_io_uring_register, -1, 0, NULL, 0), "io_uring_register");
	tally_say(&t);
}

static void open_aio(void)
{
	unsigned long context = 0;

	say_result(syscall(SYS_io_setup, 128, &context), "an AIO context");
}

static void open_userfaultfd(void)
{
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_userfaultfd, 1 /* user mode only */), "userfaultfd");
	tally_result(&t, open("/dev/userfaultfd", O_RDWR), "/dev/userfaultfd");
	tally_say(&t);
}

static void open_memfd_secret(void)
{
	struct tally t = { 0 };

	tally_result(&t, syscall(447, 0), "memfd_secret");
	tally_say(&t);
}

/* ---- keyrings ---- */

static void use_keys(void)
{
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_add_key, "user", "escape", "x", 1ul, KEY_SPEC_PROCESS_KEYRING),
		     "add_key");
	tally_result(&t, syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 0),
		     "keyctl");
	tally_entry(&t, syscall(SYS_request_key, "user", "escape-none", NULL, 0), "request_key");
	tally_say(&t);
}

static void read_callers_key(void)
{
	const char *name = canary("key");
	struct tally t = { 0 };
	char text[64] = "";
	long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", name, 0);

	if (key >= 0 && syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof(text) - 1) > 0)
		say_escaped("the caller's key says: %.20s", text);
	tally_error(&t, errno);
	tally_say(&t);
}

/* ---- modules, reboots, clocks ---- */

static void load_modules(void)
{
	struct tally t = { 0 };

	tally_entry(&t, syscall(SYS_init_module, "", 0ul, ""), "init_module");
	tally_entry(&t, syscall(SYS_finit_module, -1, "", 0), "finit_module");
	tally_entry(&t, syscall(SYS_delete_module, "agentkernel_no_such_module", O_NONBLOCK),
		    "delete_module");
	tally_say(&t);
}

static void boot_another(void)
{
	struct tally t = { 0 };

	tally_entry(&t, syscall(SYS_reboot, 0, 0, 0, NULL),
		    "reboot"); /* without its magic numbers */
	tally_entry(&t, syscall(SYS_kexec_load, 0ul, 0ul, NULL, ~0ul), "kexec_load");
	tally_say(&t);
}

static void use_swap(void)
{
	struct tally t = { 0 };

	tally_entry(&t, syscall(SYS_swapon, "/nonexistent", 0), "swapon");
	tally_entry(&t, syscall(SYS_swapoff, "/nonexistent"), "swapoff");
	tally_entry(&t, syscall(SYS_acct, "/nonexistent"), "acct");
	tally_entry(&t, syscall(SYS_quotactl, 0, "/nonexistent", 0, NULL), "quotactl");
	tally_say(&t);
}

static void read_kernel_log(void)
{
	char text[64];

	say_result(syscall(SYS_syslog, 3, text, sizeof(text)), "reading the kernel's log");
}

static void set_clocks(void)
{
	struct timex time = { 0 };
	struct timespec now;
	struct tally t = { 0 };

	tally_entry(&t, syscall(SYS_settimeofday, NULL, &(struct timezone){ 10000, 0 }),
		    "settimeofday");
	(void)clock_gettime(CLOCK_REALTIME, &now);
	tally_result(&t, syscall(SYS_clock_settime, CLOCK_REALTIME, &now), "clock_settime");
	if (syscall(SYS_adjtimex, &time) < 0)
		say_broken("adjtimex cannot be read: %s", errno_name(errno));
	time.modes = ADJ_TICK; /* its current value */
	tally_result(&t, syscall(SYS_adjtimex, &time), "adjtimex");
	tally_result(&t, syscall(SYS_clock_adjtime, CLOCK_REALTIME, &time), "clock_adjtime");
	tally_say(&t);
}

static void set_names(void)
{
	struct utsname u;
	struct tally t = { 0 };

	(void)uname(&u);
	tally_result(&t, syscall(SYS_sethostname, u.nodename, strlen(u.nodename)), "sethostname");
	tally_result(&t, syscall(SYS_setdomainname, u.domainname, strlen(u.domainname)),
		     "setdomainname");
	tally_say(&t);
}

static void watch_everything(void)
{
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_fanotify_init, FAN_CLASS_NOTIF, O_RDONLY), "fanotify");
	tally_result(&t, syscall(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, O_RDONLY),
		     "fanotify by ids");
	tally_say(&t);
}

static void set_personality(void)
{
	struct tally t = { 0 };

	tally_result(&t, personality(ADDR_NO_RANDOMIZE), "ADDR_NO_RANDOMIZE");
	tally_result(&t, personality(READ_IMPLIES_EXEC), "READ_IMPLIES_EXEC");
	tally_result(&t, personality(MMAP_PAGE_ZERO), "MMAP_PAGE_ZERO");
	tally_say(&t);
}

#if defined(__x86_64__)

static void use_ports(void)
{
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_ioperm, 0x80ul, 1ul, 1), "ioperm");
	tally_result(&t, syscall(SYS_iopl, 3), "iopl");
	tally_say(&t);
}

static void set_ldt(void)
{
	const uint32_t entry[4] = { 0, 0, 0, 0x28 };

	say_result(syscall(SYS_modify_ldt, 1, entry, sizeof(entry)), "modify_ldt");
}

/* unshare(CLONE_NEWUSER) by its number for 32-bit programs */
static void enter_by_i386(void)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(I386_UNSHARE), "b"(0x10000000)
			 : "memory", "r8", "r9", "r10", "r11");
	errno = (int)-result;
	say_result(result < 0 ? -1 : 0, "the 32-bit entry");
}

static void enter_by_x32(void)
{
	struct tally t = { 0 };

	tally_result(&t, syscall(SYS_unshare | X32_BIT, 0x10000000), "the x32 entry");
	tally_result(&t, syscall(SYS_getpid | X32_BIT), "the x32 entry");
	tally_say(&t);
}

#else

static void no_such_machine(void)
{
	say_denied_as("not on this machine");
}

#define use_ports no_such_machine
#define set_ldt no_such_machine
#define enter_by_i386 no_such_machine
#define enter_by_x32 no_such_machine

#endif

static void call_unknown(void)
{
	struct tally t = { 0 };

	/* numbers of later kernels, and those beyond any */
	for (long number = 470; number < 480; number++)
		tally_result(&t, syscall(number, 0, 0, 0, 0, 0, 0), "an unknown call");
	tally_result(&t, syscall(1023), "call 1023");
	tally_result(&t, syscall(0x7fffffff), "the highest call");
	tally_say(&t);
}

const struct escape_case cases_kernel[] = {
	{ "PR11", "make BPF maps and programs", "seccomp, user namespace", "EPERM", load_bpf },
	{ "NS17a", "load and remove modules", "seccomp, capabilities", "EPERM|ENOSYS",
	  load_modules },
	{ "NS17b", "reboot, load another kernel", "seccomp, capabilities", "EPERM|ENOSYS",
	  boot_another },
	{ "NS17c", "swap, accounting, quotas", "seccomp, capabilities", "EPERM", use_swap },
	{ "NS17d", "read the kernel's log by syslog", "seccomp, capabilities", "EPERM",
	  read_kernel_log },
	{ "NS17e", "reach I/O ports", "seccomp, capabilities", "EPERM|not on this machine",
	  use_ports },
	{ "NS17f", "set the clocks", "seccomp, capabilities", "EPERM", set_clocks },
	{ "NS17g", "set the host's name", "seccomp, capabilities", "EPERM", set_names },
	{ "NS18a", "use the kernel's keyrings", "seccomp", "EPERM", use_keys },
	{ "NS18b", "read a key of the caller's session", "seccomp, own session keyring",
	  "EPERM|ENOKEY|EACCES", read_callers_key },
	{ "NS19", "userfaultfd", "seccomp, own /dev", "EPERM|ENOENT", open_userfaultfd },
	{ "NS20a", "io_uring, whose operations pass no filter", "seccomp", "EPERM", open_ring },
	{ "NS20b", "AIO contexts, which the whole machine shares", "seccomp", "ENOSYS", open_aio },
	{ "NS21a", "personalities without address randomisation", "seccomp", "EPERM",
	  set_personality },
	{ "NS21b", "modify_ldt", "seccomp", "EPERM|not on this machine", set_ldt },
	{ "NS22a", "the 32-bit entry, int 0x80", "seccomp: other architectures",
	  "SIGSYS|not on this machine", enter_by_i386 },
	{ "NS22b", "the x32 entry", "seccomp", "ENOSYS|not on this machine", enter_by_x32 },
	{ "NS22c", "calls that nobody knows", "seccomp", "ENOSYS", call_unknown },
	{ "NS23", "perf_event_open", "seccomp", "EPERM", open_perf },
	{ "NS24", "memfd_secret", "seccomp", "EPERM", open_memfd_secret },
	{ "FS27", "fanotify", "seccomp", "EPERM", watch_everything },
	{ 0 },
};
