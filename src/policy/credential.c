/* credential - paths that need care when shown to a sandbox; see credential.h. */
#include "policy/credential.h"

#include "base/cleanup.h"

const char *const credential_home[] = {
	/* keys and agents */
	".ssh",
	".gnupg",
	".pki",
	".putty",
	".age",
	".password-store",
	".local/share/keyrings",
	".config/sops",
	".config/op",
	".config/Bitwarden",
	".config/1Password",
	/* clouds and clusters */
	".aws",
	".azure",
	".boto",
	".config/gcloud",
	".config/doctl",
	".config/hcloud",
	".kube",
	".terraform.d",
	".terraformrc",
	".vault-token",
	".fly",
	".vercel",
	".netlify",
	".config/heroku",
	".oci",
	/* registries, package managers, code hosts */
	".docker",
	".config/containers",
	".npmrc",
	".yarnrc",
	".yarnrc.yml",
	".pypirc",
	".config/pip",
	".pip",
	".gem/credentials",
	".cargo/credentials",
	".cargo/credentials.toml",
	".m2/settings.xml",
	".m2/settings-security.xml",
	".gradle/gradle.properties",
	".nuget",
	".composer/auth.json",
	".config/composer",
	".git-credentials",
	".config/git/credentials",
	".config/gh",
	".config/glab-cli",
	".config/hub",
	".subversion/auth",
	/* networks and databases */
	".netrc",
	".authinfo",
	".authinfo.gpg",
	".pgpass",
	".my.cnf",
	".mylogin.cnf",
	".config/rclone",
	".s3cfg",
	".wgetrc",
	".curlrc",
	".smbcredentials",
	".config/NetworkManager",
	/* browsers and mail */
	".mozilla",
	".thunderbird",
	".config/google-chrome",
	".config/chromium",
	".config/BraveSoftware",
	".config/microsoft-edge",
	".config/vivaldi",
	".config/opera",
	".cache/google-chrome",
	".cache/chromium",
	".cache/mozilla",
	".local/share/evolution",
	/* coding agents' own keys and logs */
	".claude",
	".claude.json",
	".codex",
	".gemini",
	".config/opencode",
	".local/share/opencode",
	".config/github-copilot",
	".cursor",
	".config/Cursor",
	".config/Code",
	".aider.conf.yml",
	".cache/huggingface/token",
	".kaggle",
	".databrickscfg",
	".config/pypoetry",
	"snap/firefox",
	"snap/chromium",
	".var/app",
	/* histories */
	".bash_history",
	".zsh_history",
	".histfile",
	".local/share/fish",
	".python_history",
	".node_repl_history",
	".psql_history",
	".mysql_history",
	".sqlite_history",
	".rediscli_history",
	".lesshst",
	".viminfo",
	/* our own state */
	".local/share/agentkernel",
	".config/agentkernel",
};
const size_t credential_home_count = COUNT_OF(credential_home);

/*
 * What a program outside runs or obeys without asking, in the top directory of a project. Content
 * that people run because they want to (package.json, Makefile, .husky) is not; what has a trust of
 * its own (.envrc, agentkernel.toml) neither, nor start-up files of shells, which mean nothing
 * here.
 */
const struct credential_protected credential_protected[] = {
	{ ".git", .is_pinned_only = true, .is_kept_free = true },
	{ ".gitmodules" },
	/* obeyed by agents and editors */
	{ ".claude", .is_kept_free = true, .is_watched = true },
	{ ".mcp.json", .is_kept_free = true, .is_watched = true },
	{ ".codex", .is_kept_free = true, .is_watched = true },
	{ ".gemini", .is_kept_free = true, .is_watched = true },
	{ ".opencode", .is_kept_free = true, .is_watched = true },
	{ "opencode.json", .is_kept_free = true, .is_watched = true },
	{ "opencode.jsonc", .is_kept_free = true, .is_watched = true },
	{ ".agents", .is_kept_free = true, .is_watched = true },
	{ ".cursor", .is_kept_free = true, .is_watched = true },
	{ ".vscode", .is_kept_free = true, .is_watched = true },
	{ ".idea", .is_kept_free = true, .is_watched = true },
	{ ".zed", .is_kept_free = true, .is_watched = true },
	{ ".devcontainer", .is_kept_free = true, .is_watched = true },
	{ ".devcontainer.json", .is_kept_free = true, .is_watched = true },
};
const size_t credential_protected_count = COUNT_OF(credential_protected);

/* Run or obeyed by git, at the next commit or status. */
const struct credential_protected credential_git[] = {
	{ "hooks", .is_kept_free = true, .is_watched = true },
	{ "config", .is_watched = true },
	/* git would stumble over a directory: no settings, and "what is common is here" */
	{ "config.worktree", .is_kept_free = true, .text = "" },
	{ "commondir", .is_kept_free = true, .is_watched = true, .text = ".\n" },
	{ "gitdir" }, /* of a linked worktree's entry */
	{ "modules", .is_pinned_only = true, .is_kept_free = true },
	{ "worktrees", .is_pinned_only = true },
	{ "info", .is_pinned_only = true },
	{ "info/attributes" },
};
const size_t credential_git_count = COUNT_OF(credential_git);
