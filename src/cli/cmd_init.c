/* cmd_init - agentkernel init: writes a commented agentkernel.toml for this directory's project. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/say.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "state/configfile.h"
#include "named/named.h"
#include "engine/project.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct flags {
	bool is_forced, is_printed;
	const char *mode;
};

static const struct opt rows[] = {
	{ "Options", "force", 'f', NULL, "replace the file that is there", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_forced) },
	{ NULL, "print", 0, NULL, "only print it", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_printed) },
	{ NULL, "compatibility-mode", 'm', "MODE", "for this agent: claude, codex or gemini",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, mode) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

/* Turns the directory's name into a valid sandbox name. */
static void format_name(const char *cwd, struct buf *out)
{
	for (const char *c = path_base_name(cwd); *c && out->len < NAMED_NAME_MAX_BYTES; c++) {
		char lower = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
		bool is_plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');

		if (is_plain || (out->len > 0 && c[1] && strchr("_.-", lower)))
			buf_add(out, &lower, 1);
	}
	if (out->len == 0)
		buf_add_text(out, "sandbox");
}

static void format_file(const char *cwd, const struct flags *f, struct buf *out)
{
	char origin[256] = "";
	const char *image = project_detect(cwd, NULL, origin, sizeof(origin));
	cleanup_buf struct buf name;

	/* it names a project file inside a comment, which a newline would end */
	for (char *c = origin; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';

	buf_init(&name, NAMED_NAME_MAX_BYTES + 2);
	format_name(cwd, &name);
	buf_addf(out, "# What agentkernel allows in this project. A file that comes with a project "
		      "can only\n"
		      "# take away from what your own configuration and the command line allow; "
		      "after reading\n"
		      "# it, 'agentkernel config trust' lets it give, too. 'agentkernel policy "
		      "show' tells what\n"
		      "# all of it adds up to, 'agentkernel config check' finds mistakes.\n\n");
	buf_addf(out, "[sandbox]\nname = \"%s\"\n", buf_text(&name));
	if (image)
		buf_addf(out, "image = \"%s\"    # %s\n", image, origin);
	else
		buf_add_text(out, "# image = \"debian:12\"    # without one: this machine's own "
				  "programs\n");
	buf_add_text(out, "# init = \"make deps\"    # once in a new sandbox, before anything "
			  "else\n\n");
	buf_add_text(out, "[agent]\n");
	buf_addf(out,
		 "%scompatibility_mode = \"%s\"    # claude, codex, gemini: its project, "
		 "domains and key\n\n",
		 f->mode ? "" : "# ", f->mode ? f->mode : "claude");
	buf_addf(out,
		 "[security]\n"
		 "%sprofile = \"moderate\"    # restrictive, moderate, permissive; undoes the "
		 "mode\n"
		 "mount_cwd = true    # this directory at its own path, writable\n"
		 "# protect = [\"deploy\"]    # read-only besides .git/hooks, .vscode, ...\n"
		 "# mask = [\".env*\"]    # appear empty\n"
		 "# pass_env = [\"LANG\"]    # variables of yours\n\n",
		 f->mode ? "# " : "");
	buf_add_text(out,
		     "[network]\n"
		     "# policy = \"deny\"    # then only what is allowed below\n"
		     "# allow = [\"api.example.com\", \"*.example.org:443\", \"10.1.2.0/24\"]\n"
		     "# block = [\"ads.example.com\"]\n\n");
	buf_add_text(out, "[resources]\n"
			  "# memory = \"2GiB\"\n"
			  "# cpus = 2\n"
			  "# pids = 512\n"
			  "# timeout = \"10m\"\n"
			  "# idle_timeout = \"10m\"    # a sandbox that stays sleeps then\n\n");
	buf_add_text(out,
		     "# [env]\n"
		     "# NODE_ENV = \"test\"\n\n"
		     "# [[mounts]]\n"
		     "# source = \"./data\"\n"
		     "# target = \"/data\"\n"
		     "# read_only = true\n\n"
		     "# [[services]]    # runs whenever a sandbox that stays does\n"
		     "# name = \"web\"\n"
		     "# command = \"npm start\"\n"
		     "# port = 3000\n\n"
		     "# [tools]    # what programs that call agentkernel over MCP or HTTP may do\n"
		     "# commands = { block = [\"curl\"] }\n"
		     "# rate_limit = { calls = 100, window = \"60s\" }\n");
}

static int write_file(const struct buf *text, const struct flags *f, struct err *e)
{
	cleanup_fd int fd = -1;
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
		    (f->is_forced ? O_TRUNC : O_EXCL);
	int r;

	fd = open(CONFIGFILE_NAME, flags, 0644);
	if (fd < 0 && errno == EEXIST)
		return err_set(e, ERR_EXISTS,
			       CONFIGFILE_NAME " is there already (--force replaces it)");
	if (fd < 0)
		return err_sys(e, errno, "write " CONFIGFILE_NAME);
	r = file_write_all(fd, text->bytes, text->len);
	if (r < 0) {
		(void)unlink(CONFIGFILE_NAME); /* remove a partial file */
		return err_sys(e, -r, "write " CONFIGFILE_NAME);
	}
	return 0;
}

/* Trusts these bytes, which we wrote on the user's request. */
static int trust(const struct ak *ak, const char *cwd, const struct buf *text, struct err *e)
{
	cleanup_free char *path = mem_format("%s/" CONFIGFILE_NAME, cwd);

	if (configfile_trust_bytes(ak, path, text->bytes, text->len, e) < 0)
		return err_wrap(e, "wrote " CONFIGFILE_NAME ", but it cannot be trusted yet");
	say("wrote " CONFIGFILE_NAME ", which is in effect (after a change of yours, "
	    "'agentkernel config trust' puts that into effect too)");
	return 0;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = "init", .options = &options };
	struct flags flags = { 0 };
	enum mode_id mode;
	cleanup_buf struct buf text;
	unsigned count = 0;
	char cwd[PATH_MAX];
	char *words[1];

	buf_init(&text, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	if (flags.mode && !mode_find(flags.mode, &mode))
		return policy_refuse_choice("mode", flags.mode, mode_names, e);
	if (!getcwd(cwd, sizeof(cwd)))
		return err_set(e, ERR_INVALID, "the working directory cannot be read");
	format_file(cwd, &flags, &text);
	*ret_status = 0;
	if (flags.is_printed)
		return cli_print(&text, e);
	return write_file(&text, &flags, e) < 0 ? -1 : trust(context->ak, cwd, &text, e);
}

const struct cli_command cmd_init = {
	.name = "init",
	.summary = "write a commented agentkernel.toml for the project in this directory",
	.usage = "[--force]",
	.options = &options,
	.run = run,
};
