/* credential - paths that need care when shown to a sandbox; see credential.h. */
#include "policy/credential.h"

#include "base/cleanup.h"

const char *const credential_home[] = {
	/* keys and agents */
	".ssh", ".gnupg", ".pki", ".putty", ".age", ".password-store", ".local/share/keyrings",
	".config/sops", ".config/op", ".config/Bitwarden", ".config/1Password",
	/* clouds and clusters */
	".aws", ".azure", ".boto", ".config/gcloud", ".config/doctl", ".config/hcloud", ".kube",
	".terraform.d", ".terraformrc", ".vault-token", ".fly", ".vercel", ".netlify",
	".config/heroku", ".oci",
	/* registries, package managers, code hosts */
	".docker", ".config/containers", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc",
	".config/pip", ".pip", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml",
	".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".nuget",
	".composer/auth.json", ".config/composer", ".git-credentials", ".config/git/credentials",
	".config/gh", ".config/glab-cli", ".config/hub", ".subversion/auth",
	/* networks and databases */
	".netrc", ".authinfo", ".authinfo.gpg", ".pgpass", ".my.cnf", ".mylogin.cnf",
	".config/rclone", ".s3cfg", ".wgetrc", ".curlrc", ".smbcredentials",
	".config/NetworkManager",
	/* browsers and mail */
	".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium",
	".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
	".cache/google-chrome", ".cache/chromium", ".cache/mozilla", ".local/share/evolution",
	/* coding agents' own keys and logs */
	".claude", ".claude.json", ".codex", ".gemini", ".config/opencode",
	".local/share/opencode", ".config/github-copilot", ".cursor", ".config/Cursor",
	".config/Code", ".aider.conf.yml",
	".cache/huggingface/token", ".kaggle", ".databrickscfg", ".config/pypoetry",
	"snap/firefox", "snap/chromium", ".var/app",
	/* histories */
	".bash_history", ".zsh_history", ".histfile", ".local/share/fish", ".python_history",
	".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history",
	".rediscli_history", ".lesshst", ".viminfo",
	/* our own state */
	".local/share/agentkernel", ".config/agentkernel",
};
const size_t credential_home_count = COUNT_OF(credential_home);

const struct credential_protected credential_protected[] = {
	/* run by git, on the host, at the next commit or status */
	{ ".git", .is_pinned_only = true },
	{ ".git/hooks" },
	{ ".git/config" },
	{ ".git/config.worktree" },
	{ ".git/modules" },
	{ ".git/info", .is_pinned_only = true },
	{ ".git/info/attributes" },
	{ ".gitmodules" },
	/* obeyed by agents and editors */
	{ ".claude" },
	{ ".mcp.json" },
	{ ".codex" },
	{ ".gemini" },
	{ ".opencode" },
	{ ".cursor" },
	{ ".vscode" },
	{ ".idea" },
	{ ".zed" },
	{ ".devcontainer" },
	{ "agentkernel.toml" },
	/* run by shells and tools that look into the directory they start in */
	{ ".envrc" },
	{ ".bashrc" },
	{ ".bash_profile" },
	{ ".profile" },
	{ ".zshrc" },
	{ ".zprofile" },
	{ ".zshenv" },
	{ ".husky" },
	{ ".pre-commit-config.yaml" },
};
const size_t credential_protected_count = COUNT_OF(credential_protected);
