/*
 * title - sets the name of a process in ps; see title.h.
 *
 * Theory of operation. ps shows the bytes between two addresses that the kernel recorded at
 * execve(), where the strings of argv are adjacent. We overwrite them. A title that is longer than
 * these strings gets its own memory, if the kernel lets us set the addresses (PR_SET_MM_MAP, which
 * needs no privilege but must be given all other addresses too; they are in /proc/self/stat);
 * otherwise it is truncated. The environment, which follows, is not overwritten: its strings are in
 * use.
 */
#include "base/title.h"

#include "base/file.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define TEXT_MAX_BYTES (TITLE_SUBJECT_MAX_BYTES + 48u)
#define NAME_MAX_BYTES 16u /* the kernel's limit */
#define STAT_MAX_BYTES 1024u

static const struct {
	const char *name;           /* for comm: before ':' and the subject */
	const char *text;           /* for the command line */
	const char *before, *after; /* around the subject */
	bool is_lasting;            /* long-running: worth reading /proc to avoid truncation */
} roles[] = {
	[TITLE_SUPERVISOR] = { "ak-sup", "supervisor", " of ", "", true },
	[TITLE_INIT] = { "ak-init", "init", " of ", "" },
	[TITLE_GATE] = { "ak-gate", "gate", " of ", "" },
	[TITLE_FILES] = { "ak-files", "files", " of ", "" },
	[TITLE_CHECKPOINT] = { "ak-checkpoint", "checkpoint", " of ", "" },
	[TITLE_WORKER] = { "ak", "worker", " (", ")" },
	[TITLE_PORT_HOLDER] = { "ak-ports", "ports of sleeping sandboxes", "", "", true },
	[TITLE_DAEMON] = { "ak-daemon", "daemon", "", "", true },
	[TITLE_WARM] = { "ak-warm", "warm sandbox", "", "", true },
	[TITLE_MCP_SERVER] = { "ak-mcp", "MCP server", "", "", true },
	[TITLE_HTTP_SERVER] = { "ak-serve", "HTTP server", " on ", "", true },
};
_Static_assert(sizeof(roles) / sizeof(roles[0]) == TITLE_ROLE_COUNT, "a role has no title");

static char *place; /* NULL: none, as in a unit test */
static size_t place_len;
static bool is_place_ours;
static char supervised[TITLE_SUBJECT_MAX_BYTES]; /* the subject of TITLE_SUPERVISOR */

char **title_init(char **argv)
{
	size_t count = 0, len = 0;
	char **copy;
	char *text;

	/* the strings are adjacent, unless somebody has moved them */
	while (argv[count]) {
		if (argv[count] == argv[0] + len)
			len += strlen(argv[count]) + 1;
		count++;
	}
	copy = mem_alloc((count + 1) * sizeof(*copy) + len);
	text = (char *)(copy + count + 1);
	memcpy(text, argv[0] ? argv[0] : "", len);
	for (size_t i = 0; i < count; i++) {
		bool is_inside = argv[i] >= argv[0] && argv[i] < argv[0] + len;

		copy[i] = is_inside ? text + (argv[i] - argv[0]) : argv[i];
	}
	place = argv[0];
	place_len = len;
	return copy;
}

/* Parses the numbers of /proc/self/stat after the name, which ends with the last ')'. */
static bool read_stat(uint64_t *numbers, size_t count)
{
	char line[STAT_MAX_BYTES];
	char *at;

	if (file_read_line(AT_FDCWD, "/proc/self/stat", line, sizeof(line)) < 0)
		return false;
	at = strrchr(line, ')');
	if (!at || strlen(at) < 4)
		return false;
	at += 4; /* ") S " */
	for (size_t i = 0; i < count; i++) {
		char *end;

		numbers[i] = strtoull(at, &end, 10);
		if (end == at)
			return false;
		at = end;
	}
	return true;
}

/* Indexes of the fields of proc(5) that we use. */
enum {
	STAT_FIRST = 4,
	STAT_START_CODE = 26 - STAT_FIRST,
	STAT_END_CODE,
	STAT_START_STACK,
	STAT_START_DATA = 45 - STAT_FIRST,
	STAT_END_DATA,
	STAT_START_BRK,
	STAT_ARG_START,
	STAT_ARG_END,
	STAT_ENV_START,
	STAT_ENV_END,
	STAT_COUNT,
};

/*
 * Moves the command line to memory of our own: the kernel shows only anonymous memory, so a static
 * array would not work.
 */
static void make_place(void)
{
	uint64_t n[STAT_COUNT];
	struct prctl_mm_map map;
	char *own;

	if (is_place_ours || !read_stat(n, STAT_COUNT))
		return;
	own = mmap(NULL, TEXT_MAX_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	if (own == MAP_FAILED)
		return;
	map = (struct prctl_mm_map){
		.start_code = n[STAT_START_CODE],
		.end_code = n[STAT_END_CODE],
		.start_data = n[STAT_START_DATA],
		.end_data = n[STAT_END_DATA],
		.start_brk = n[STAT_START_BRK],
		.brk = (uintptr_t)sbrk(0),
		.start_stack = n[STAT_START_STACK],
		.arg_start = (uintptr_t)own,
		.arg_end = (uintptr_t)own + TEXT_MAX_BYTES,
		.env_start = n[STAT_ENV_START],
		.env_end = n[STAT_ENV_END],
		.exe_fd = (uint32_t)-1,
	};
	if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) < 0) {
		(void)munmap(own, TEXT_MAX_BYTES);
		return;
	}
	is_place_ours = true;
	place = own;
	place_len = TEXT_MAX_BYTES;
}

static void set_command_line(enum title_role role, const char *subject)
{
	char text[TEXT_MAX_BYTES];
	size_t len;

	if (!place || place_len == 0)
		return;
	(void)snprintf(text, sizeof(text), "agentkernel: %s%s%s%s", roles[role].text,
		       subject[0] ? roles[role].before : "", subject,
		       subject[0] ? roles[role].after : "");
	len = strlen(text);
	memset(place, 0, place_len); /* always: nothing of the old text may be left */
	if (len >= place_len && roles[role].is_lasting)
		make_place();
	/* the last byte stays 0: otherwise the kernel also shows what follows */
	memcpy(place, text, len < place_len ? len : place_len - 1);
}

void title_set_name(const char *name)
{
	(void)prctl(PR_SET_NAME, name, 0, 0, 0);
}

void title_set(enum title_role role, const char *subject)
{
	char name[NAME_MAX_BYTES], cut[TITLE_SUBJECT_MAX_BYTES];

	(void)snprintf(cut, sizeof(cut), "%s", subject ? subject : "");
	(void)snprintf(name, sizeof(name), "%s%s%s", roles[role].name, cut[0] ? ":" : "", cut);
	title_set_name(name);
	set_command_line(role, cut);
	if (role == TITLE_SUPERVISOR)
		(void)snprintf(supervised, sizeof(supervised), "%s", cut);
}

void title_set_init(void)
{
	title_set(TITLE_INIT, supervised);
}
