/* refusal - explains failures of programs that no sandbox can run; see refusal.h. */
#include "ops/refusal.h"

#include "base/cleanup.h"
#include "ops/events.h"

#include <string.h>

#define ICMP "needs ICMP or raw sockets, which sandboxes do not have; try a TCP port instead (curl)"
#define CONTAINERS                                                                                 \
	"makes namespaces, which is refused inside a sandbox; run it outside, or run the image "   \
	"itself: agentkernel run -i IMAGE COMMAND"
#define NAMESPACES "makes namespaces, which is refused inside a sandbox; run the program without it"
#define DAEMON                                                                                     \
	"finds no Docker daemon inside (its socket would give away the whole machine); run it "    \
	"outside, or run the image itself: agentkernel run -i IMAGE COMMAND"
#define BROWSER                                                                                    \
	"makes a sandbox of its own, which is refused inside this one: add --no-sandbox, the "     \
	"walls "                                                                                   \
	"around it stay"

static const struct row {
	const char *program;
	const char *words;  /* after the program's name */
	const char *unless; /* an option that avoids the problem; NULL: none */
} rows[] = {
	{ "ping", ICMP, NULL },
	{ "ping6", ICMP, NULL },
	{ "fping", ICMP, NULL },
	{ "mtr", ICMP, NULL },
	{ "traceroute", ICMP, NULL },
	{ "podman", CONTAINERS, NULL },
	{ "buildah", CONTAINERS, NULL },
	{ "runc", CONTAINERS, NULL },
	{ "crun", CONTAINERS, NULL },
	{ "docker", DAEMON, NULL },
	{ "bwrap", NAMESPACES, NULL },
	{ "firejail", NAMESPACES, NULL },
	{ "nsjail", NAMESPACES, NULL },
	{ "unshare", NAMESPACES, NULL },
	{ "chromium", BROWSER, "--no-sandbox" },
	{ "chromium-browser", BROWSER, "--no-sandbox" },
	{ "chrome", BROWSER, "--no-sandbox" },
	{ "google-chrome", BROWSER, "--no-sandbox" },
	{ "google-chrome-stable", BROWSER, "--no-sandbox" },
	{ "headless_shell", BROWSER, "--no-sandbox" },
};

static bool has_word(char *const *argv, const char *word)
{
	for (; *argv; argv++)
		if (strcmp(*argv, word) == 0)
			return true;
	return false;
}

static const struct row *find(char *const *argv)
{
	const char *slash = argv[0] ? strrchr(argv[0], '/') : NULL;
	const char *program = slash ? slash + 1 : argv[0];

	for (size_t i = 0; program && i < COUNT_OF(rows); i++)
		if (strcmp(program, rows[i].program) == 0)
			return rows[i].unless && has_word(argv, rows[i].unless) ? NULL : &rows[i];
	return NULL;
}

bool refusal_explain(const struct op_events *ev, char *const *argv, const struct run_result *r)
{
	const struct row *row;

	if (r->exit_code == 0 || (r->end != RUN_EXITED && r->end != RUN_SIGNALLED))
		return false;
	row = find(argv);
	if (row)
		op_remark(ev, "'%s' %s", row->program, row->words);
	return row;
}
