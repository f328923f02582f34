/*
 * reports - linked into the programs of a SAN=1 build, so that no sanitizer report is lost.
 *
 * A report goes to stderr, which is /dev/null for half of our processes, and nobody checks the exit
 * status of some. A separate file (log_path) cannot be opened by processes with another root,
 * Landlock rules or a system call filter. So each program first maps a file that tests/run-all has
 * created, and a process that dies of a report writes it there: that needs no system call, and
 * works in forked processes too. Programs executed inside a sandbox do not have it.
 *
 * The file is a row of slots, initially zero. A process takes a slot by changing its first byte.
 * Without the file nothing is mapped: when run by hand, a report is only on stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOT_BYTES 4096
#define COMMAND_MAX_BYTES 512

void __ubsan_on_report(void);
void __ubsan_get_current_report_data(const char **ret_kind, const char **ret_message,
				     const char **ret_file, unsigned *ret_line,
				     unsigned *ret_column, char **ret_address);

static char (*slots)[SLOT_BYTES];
static size_t slot_count;
static char command[COMMAND_MAX_BYTES];

/* If the file is full, the existing reports are enough. */
static void record(const char *kind, const char *text)
{
	for (size_t i = 0; i < slot_count; i++) {
		char empty = 0;

		if (!__atomic_compare_exchange_n(&slots[i][0], &empty, '=', 0, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		(void)snprintf(slots[i] + 1, SLOT_BYTES - 1, "= %s: process %d:%s\n%s\n", kind,
			       (int)getpid(), command, text);
		return;
	}
}

/*
 * Leak detection needs system calls that the gate's filter refuses; valgrind checks the gate. The
 * name is copied at the start, because title_set() overwrites what program_invocation_short_name
 * points to.
 */
static char program[64];

int __lsan_is_turned_off(void)
{
	return strcmp(program, "agentkernel-gate") == 0;
}

/* Called after each report except UBSan's; for leaks it is the only sign. */
static void on_death(void)
{
	record("died of a sanitizer", "");
}

static void on_report(const char *text)
{
	record("AddressSanitizer", text);
}

void __ubsan_on_report(void)
{
	const char *kind = "", *message = "", *file = "";
	char text[1024], *address;
	unsigned line = 0, column;

	__ubsan_get_current_report_data(&kind, &message, &file, &line, &column, &address);
	(void)snprintf(text, sizeof(text), "%s:%u: %s: %s", file, line, kind, message);
	record("UndefinedBehaviorSanitizer", text);
}

static __attribute__((constructor)) void map_reports(int argc, char **argv)
{
	int fd = open(REPORTS_FILE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct stat status;
	void *mapped;

	(void)snprintf(program, sizeof(program), "%s", program_invocation_short_name);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && status.st_size >= SLOT_BYTES) {
		mapped = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			      0);
		if (mapped != MAP_FAILED) {
			slots = mapped;
			slot_count = (size_t)status.st_size / SLOT_BYTES;
		}
	}
	(void)close(fd);
	for (int i = 0; i < argc; i++) {
		size_t used = strlen(command);

		(void)snprintf(command + used, sizeof(command) - used, " %s", argv[i]);
	}
	__asan_set_error_report_callback(on_report);
	__asan_set_death_callback(on_death);
}
