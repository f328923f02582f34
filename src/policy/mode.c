/*
 * mode - presets for coding agents; see mode.h.
 *
 * Theory of operation. The lists hold domain patterns, not single hosts, because host names change
 * more often than the owner of a domain. Telemetry and error reporting are left out on purpose:
 * agents work without them. Many of these domains accept uploads from anyone with an account: a
 * list limits accidental connections, but cannot stop a determined program from sending data out.
 */
#include "policy/mode.h"

#include <assert.h>
#include <string.h>

static const char *const anthropic[] = {
	"*.anthropic.com",
	"*.claude.ai",
	"*.claude.com",
	NULL,
};

static const char *const openai[] = {
	"*.openai.com",
	"*.chatgpt.com", /* for users signed in with an account instead of a key */
	NULL,
};

static const char *const google[] = {
	"*.googleapis.com",
	"*.accounts.google.com",
	"*.ai.google.dev",
	NULL,
};

/* Download hosts of package managers. */
static const char *const registries[] = {
	/* npm, yarn, pnpm, node-gyp's headers */
	"*.npmjs.org",
	"*.npmjs.com",
	"*.yarnpkg.com",
	"*.nodejs.org",
	/* pip, uv, poetry */
	"*.pypi.org",
	"*.pythonhosted.org",
	/* cargo, rustup */
	"*.crates.io",
	"*.rust-lang.org",
	/* go: its proxy redirects large modules to Google's storage */
	"*.golang.org",
	"*.go.dev",
	"*.gopkg.in",
	"*.storage.googleapis.com",
	/* gem, bundler */
	"*.rubygems.org",
	/* maven, gradle */
	"*.maven.org",
	"*.maven.apache.org",
	"*.gradle.org",
	/* composer */
	"*.packagist.org",
	"*.getcomposer.org",
	/* mix, rebar */
	"*.hex.pm",
	/* apt, apk */
	"*.debian.org",
	"*.ubuntu.com",
	"*.alpinelinux.org",
	NULL,
};

static const char *const code_hosts[] = {
	"*.github.com",    "*.githubusercontent.com", "*.gitlab.com",
	"*.bitbucket.org", "*.codeberg.org",          NULL,
};

static const char *const no_secrets[] = { NULL };
static const char *const claude_secrets[] = { "ANTHROPIC_API_KEY", NULL };
static const char *const codex_secrets[] = { "OPENAI_API_KEY", NULL };
static const char *const gemini_secrets[] = { "GEMINI_API_KEY", "GOOGLE_API_KEY", NULL };

static const struct mode modes[] = {
#define MODE(id, text, ...) [MODE_##id] = { .name = (text), .origin = "mode " text, __VA_ARGS__ },
#include "policy/modes.def"
};

const char *const mode_names[] = {
#define MODE(id, text, ...) text,
#include "policy/modes.def"
	NULL,
};

const struct mode *mode_get(enum mode_id id)
{
	assert(id < MODE_COUNT);
	return &modes[id];
}

const struct mode *mode_find(const char *name, enum mode_id *ret_id)
{
	for (unsigned id = 0; id < MODE_COUNT; id++) {
		if (strcmp(modes[id].name, name) != 0)
			continue;
		*ret_id = (enum mode_id)id;
		return &modes[id];
	}
	return NULL;
}
