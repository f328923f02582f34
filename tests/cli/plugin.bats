#!/usr/bin/env bats
# The plugin command, on real files in a temporary project and home: existing content stays, an
# impossible change is not started, and a project from elsewhere redirects nothing.
# shellcheck disable=SC2154,SC2016
load helpers
bats_require_minimum_version 1.5.0

setup() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	H=$W/home P=$W/project
	mkdir "$H" "$P" "$W/elsewhere"
	[ "${AS:-root}" != user ] || chown -R 12345:12345 "$W"
	cd "$P" || return 1
}

# plugin WORDS...: in the project $P, with the home $H and without the clients' own variables
plugin() {
	as env -u XDG_CONFIG_HOME -u CODEX_HOME -u CLAUDE_CONFIG_DIR -u GEMINI_CLI_HOME HOME="$H" "$AK" plugin "$@"
}

# As the caller of this round, which then owns the files.
put() {
	as mkdir -p "$(dirname "$1")"
	as tee "$1" >/dev/null
}

# Everything below a directory, with contents, owners, modes and files' times.
snapshot() {
	(cd "$1" && find . \( -type d -printf '%p %m %U\n' \) -o -printf '%p %y %m %U %T@ %l\n' | sort && find . -type f -exec sha256sum {} + | sort)
}

# nothing_changes STATUS TEXT -- PLUGIN-WORDS...: it fails for this reason and every file is
# unchanged
nothing_changes() {
	local status_wanted=$1 words=$2 before
	shift 3
	before=$(snapshot "$W")
	run plugin "$@"
	fails_with "$status_wanted" "$words"
	diff <(echo "$before") <(snapshot "$W")
}

json() {
	python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
	value = value[int(key) if isinstance(value, list) else key]
print(json.dumps(value, sort_keys=True))' "$@"
}

entry() {
	echo "{\"args\": [\"mcp\", \"server\"], \"command\": \"$AK\"}"
}

# Codex passes no other variables to a server.
CODEX_VARIABLES='env_vars = ["AGENTKERNEL_HOME", "AGENTKERNEL_IMAGE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DOCKER_CONFIG", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "https_proxy", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"]'

# ---- what is written ----

@test "plugin install claude: a server, a skill and a command in the project" {
	run --separate-stderr plugin install claude
	says "created: .mcp.json
created: .claude/skills/agentkernel/SKILL.md
created: .claude/commands/sandbox.md"
	[ "$(json .mcp.json mcpServers agentkernel)" = "$(entry)" ]
	head -2 .claude/skills/agentkernel/SKILL.md | diff - <(printf -- '---\nname: agentkernel\n')
	cmp .claude/skills/agentkernel/SKILL.md "$TOP/src/agents/plugin/skill.md"
	cmp .claude/commands/sandbox.md "$TOP/src/agents/plugin/command.md"
	[ -z "$(ls -A "$H")" ]
	run plugin install claude
	says "unchanged: .mcp.json
unchanged: .claude/skills/agentkernel/SKILL.md
unchanged: .claude/commands/sandbox.md"
}

@test "plugin install codex, gemini, opencode: each in its own files" {
	run --separate-stderr plugin install codex
	says "created: .codex/config.toml
created: .agents/skills/agentkernel/SKILL.md"
	printf '[mcp_servers.agentkernel]\ncommand = "%s"\nargs = ["mcp", "server"]\n%s\n' "$AK" "$CODEX_VARIABLES" | diff - .codex/config.toml
	run --separate-stderr plugin install gemini opencode
	says "created: .gemini/settings.json
unchanged: .agents/skills/agentkernel/SKILL.md
created: .gemini/commands/sandbox.toml
created: opencode.json
created: .opencode/skills/agentkernel/SKILL.md
created: .opencode/commands/sandbox.md"
	[ "$(json .gemini/settings.json mcpServers agentkernel)" = "$(entry)" ]
	[ "$(json opencode.json mcp agentkernel)" = "{\"command\": [\"$AK\", \"mcp\", \"server\"], \"enabled\": true, \"type\": \"local\"}" ]
	python3 - <<-'END'
		import tomllib
		command = tomllib.load(open(".gemini/commands/sandbox.toml", "rb"))
		assert set(command) == {"description", "prompt"} and "{{args}}" in command["prompt"]
	END
}

@test "plugin install --global: in the user's directories, where the clients' variables say" {
	run plugin install all --global
	[ "$status" -eq 0 ]
	[ "$(json "$H/.claude.json" mcpServers agentkernel)" = "$(entry)" ]
	for file in .claude/skills/agentkernel/SKILL.md .claude/commands/sandbox.md .codex/config.toml .agents/skills/agentkernel/SKILL.md \
		.gemini/settings.json .gemini/commands/sandbox.toml .config/opencode/opencode.json .config/opencode/skills/agentkernel/SKILL.md \
		.config/opencode/commands/sandbox.md; do
		[ -f "$H/$file" ]
	done
	[ -z "$(ls -A "$P")" ]
	run as env HOME="$H" CLAUDE_CONFIG_DIR="$W/a" CODEX_HOME="$W/b" GEMINI_CLI_HOME="$W/c" XDG_CONFIG_HOME="$W/d" "$AK" plugin install all -g
	[ "$status" -eq 0 ]
	for file in a/.claude.json a/skills/agentkernel/SKILL.md a/commands/sandbox.md b/config.toml c/.gemini/settings.json c/.gemini/commands/sandbox.toml \
		c/.agents/skills/agentkernel/SKILL.md d/opencode/opencode.json; do
		[ -f "$W/$file" ]
	done
}

@test "plugin install mcp: .mcp.json, and with --global something to paste" {
	run plugin install mcp
	says "created: .mcp.json"
	run --separate-stderr plugin install mcp --global
	[ "$status" -eq 0 ]
	[ "$output" = "$(cat .mcp.json)" ]
	[ "$stderr" = "agentkernel: no file is read by all MCP clients: paste this into the settings of yours" ]
	[ -z "$(ls -A "$H")" ]
}

@test "plugin install: the program's name where PATH finds it, else its path" {
	run as env HOME="$H" PATH="$W/elsewhere:$SHARED:/usr/bin:/bin" "$AK" plugin install mcp
	[ "$(json .mcp.json mcpServers agentkernel command)" = '"agentkernel"' ]
	# another program of that name comes first
	printf '#!/bin/sh\n' | put "$W/elsewhere/agentkernel"
	as chmod 755 "$W/elsewhere/agentkernel"
	run as env HOME="$H" PATH="$W/elsewhere:$SHARED:/usr/bin:/bin" "$AK" plugin install mcp --force
	[ "$(json .mcp.json mcpServers agentkernel command)" = "\"$AK\"" ]
	# a relative directory in PATH does not count
	as ln -s "$AK" agentkernel
	run as env HOME="$H" PATH=".::/usr/bin:/bin" "$AK" plugin install mcp
	says "unchanged: .mcp.json"
}

@test "plugin install: modes follow the umask, and Claude's own file is private" {
	run as env HOME="$H" bash -c "umask 027; '$AK' plugin install claude codex && '$AK' plugin install claude --global"
	[ "$status" -eq 0 ]
	[ "$(stat -c %a .mcp.json)" = 640 ]
	[ "$(stat -c %a .claude/skills)" = 750 ]
	[ "$(stat -c %a "$H/.claude.json")" = 600 ]
	run as env HOME="$H" bash -c "umask 022; '$AK' plugin install opencode"
	[ "$(stat -c %a opencode.json)" = 644 ]
	[ "$(stat -c %a .opencode)" = 755 ]
}

@test "the skill names the server's tools, all of them and no others" {
	run as env HOME="$H" AGENTKERNEL_HOME="$W/home/state" python3 - "$AK" "$TOP/src/agents/plugin/skill.md" <<-'END'
		import json, re, subprocess, sys
		messages = [{"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {},
			"clientInfo": {"name": "test", "version": "1"}}}, {"method": "notifications/initialized"}, {"id": 1, "method": "tools/list"}]
		server = subprocess.Popen([sys.argv[1], "mcp", "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
		server.stdin.writelines(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
		server.stdin.flush()
		server.stdout.readline()
		tools = {tool["name"] for tool in json.loads(server.stdout.readline())["result"]["tools"]}
		server.stdin.close()
		server.wait()
		named = set(re.findall(r"(?:sandbox|checkpoint)_[a-z_]*[a-z]", open(sys.argv[2]).read()))
		print("not in the skill:", sorted(tools - named), "not a tool:", sorted(named - tools))
	END
	says "not in the skill: [] not a tool: []"
}

@test "plugin install says what is left to do in each client, if anything was written" {
	run --separate-stderr plugin install claude codex
	[ "$stderr" = "agentkernel: claude asks once whether to use this project's server (claude -p uses it at once)
agentkernel: claude asks before each call, and claude -p refuses them: choose \"don't ask again\", or start it with --allowedTools mcp__agentkernel
agentkernel: codex reads .codex/config.toml in a project that you trust: start codex here once, and say so
agentkernel: codex asks before each call that changes something, and codex exec refuses them (add --approve to let it call without asking)" ]
	run --separate-stderr plugin install claude codex
	[ -z "$stderr" ]
	run --separate-stderr plugin install codex gemini --global --dry-run
	[ -z "$stderr" ]
	run --separate-stderr plugin install codex gemini --global --approve
	[ "$stderr" = "agentkernel: gemini uses MCP servers in a folder that you trust: start gemini there once, and say so, or set GEMINI_CLI_TRUST_WORKSPACE=true (--skip-trust is not enough)" ]
	run --separate-stderr plugin install opencode mcp # no notes
	[ -z "$stderr" ]
}

@test "plugin install --approve: codex and gemini are told not to ask, and nobody else is" {
	run plugin install all
	run --separate-stderr plugin install all --approve
	[ "$(grep -v unchanged <<<"$output")" = "changed: .codex/config.toml
changed: .gemini/settings.json" ]
	printf '[mcp_servers.agentkernel]\ncommand = "%s"\nargs = ["mcp", "server"]\n%s\ndefault_tools_approval_mode = "approve"\n' "$AK" "$CODEX_VARIABLES" | diff - .codex/config.toml
	[ "$(json .gemini/settings.json mcpServers agentkernel trust)" = true ]
	[ "$(json .mcp.json mcpServers agentkernel)" = "$(entry)" ]
	# agentkernel writes both forms: no conflict, and the approval stays
	run plugin list
	[ "$(awk '$2 == "project" { print $3 }' <<<"$output" | sort -u)" = installed ]
	before=$(snapshot "$P")
	run plugin install all
	diff <(echo "$before") <(snapshot "$P")
	run --separate-stderr plugin install codex gemini --force # removes it
	[ "$(json .gemini/settings.json mcpServers agentkernel)" = "$(entry)" ]
	run ! grep -q approval .codex/config.toml
	run plugin install codex gemini --approve
	run plugin remove all
	[ "$status" -eq 0 ]
	[ -z "$(ls -A)" ]
	# another approval mode is the user's own
	printf '[mcp_servers.agentkernel]\ncommand = "%s"\nargs = ["mcp", "server"]\ndefault_tools_approval_mode = "prompt"\n' "$AK" | put .codex/config.toml
	nothing_changes 125 "'.codex/config.toml' has an entry 'agentkernel' already" -- install codex --approve
}

# ---- merging ----

@test "plugin install: other entries, order, style and comments stay" {
	put .mcp.json <<-'END'
		{
		    "mcpServers": {
		        "z": { "command": "z" },
		        "a": { "command": "a" }
		    },
		    "other": [1,2,   3]
		}
	END
	put .gemini/settings.json <<-'END'
		// mine
		{
		  "theme": "dark", /* at night */
		  "mcpServers": {
		    // none yet
		  }
		}
	END
	printf '{\r\n\t"$schema": "https://opencode.ai/config.json", // keep\r\n\t"mcp": {\r\n\t\t"x": {"type": "remote", "url": "u",},\r\n\t},\r\n}\r\n' | put opencode.jsonc
	printf '# mine\nmodel = "x"   # fast\n\n[mcp_servers.other]\ncommand = "other" # keep\n\n[z]\na = 1' | put .codex/config.toml
	run plugin install all
	[ "$status" -eq 0 ]
	diff - .mcp.json <<-END
		{
		    "mcpServers": {
		        "z": { "command": "z" },
		        "a": { "command": "a" },
		        "agentkernel": {
		            "command": "$AK",
		            "args": ["mcp", "server"]
		        }
		    },
		    "other": [1,2,   3]
		}
	END
	diff - .gemini/settings.json <<-END
		// mine
		{
		  "theme": "dark", /* at night */
		  "mcpServers": {
		    // none yet
		    "agentkernel": {
		      "command": "$AK",
		      "args": ["mcp", "server"]
		    }
		  }
		}
	END
	printf '{\r\n\t"$schema": "https://opencode.ai/config.json", // keep\r\n\t"mcp": {\r\n\t\t"x": {"type": "remote", "url": "u",},\r\n\t\t"agentkernel": {\r\n\t\t\t"type": "local",\r\n\t\t\t"command": ["%s", "mcp", "server"],\r\n\t\t\t"enabled": true\r\n\t\t},\r\n\t},\r\n}\r\n' "$AK" | cmp - opencode.jsonc
	[ ! -e opencode.json ]
	grep -q '^model = "x"   # fast$' .codex/config.toml
	grep -q '^command = "other" # keep$' .codex/config.toml
	python3 - "$AK" <<-'END'
		import sys, tomllib
		config = tomllib.load(open(".codex/config.toml", "rb"))
		assert "AGENTKERNEL_HOME" in config["mcp_servers"]["agentkernel"].pop("env_vars")
		assert config == {"model": "x", "z": {"a": 1}, "mcp_servers": {"other": {"command": "other"},
			"agentkernel": {"command": sys.argv[1], "args": ["mcp", "server"]}}}, config
	END
	run plugin remove all
	[ "$status" -eq 0 ]
	grep -q '// none yet' .gemini/settings.json
	grep -q '^model = "x"   # fast$' .codex/config.toml
	python3 - <<-'END'
		import tomllib
		config = tomllib.load(open(".codex/config.toml", "rb"))
		assert config == {"model": "x", "z": {"a": 1}, "mcp_servers": {"other": {"command": "other"}}}, config
	END
	[ "$(json .mcp.json mcpServers)" = '{"a": {"command": "a"}, "z": {"command": "z"}}' ]
	printf '{\r\n\t"$schema": "https://opencode.ai/config.json", // keep\r\n\t"mcp": {\r\n\t\t"x": {"type": "remote", "url": "u",},\r\n\t},\r\n}\r\n' | cmp - opencode.jsonc
	[ ! -e .claude ]
	[ ! -e .agents ]
}

@test "plugin install: a file keeps its mode and its owner" {
	echo '{"mcpServers": {}}' | put .mcp.json
	chmod 604 .mcp.json
	[ "${AS:-root}" != root ] || chown 4242:4343 .mcp.json
	owner=$(stat -c %u:%g .mcp.json)
	run plugin install mcp
	says "changed: .mcp.json"
	[ "$(stat -c %a .mcp.json)" = 604 ]
	[ "$(stat -c %u:%g .mcp.json)" = "$owner" ]
}

@test "plugin install: a file that several of a client's could be is the one that counts" {
	echo '{}' | put .opencode/opencode.jsonc
	run plugin install opencode
	[[ "$output" == "changed: .opencode/opencode.jsonc"* ]]
	echo '{"mcp": {"agentkernel": {"enabled": false}}}' | put opencode.jsonc
	# the file that the client reads last has the entry already
	run plugin install opencode
	[[ "$output" == "unchanged: .opencode/opencode.jsonc"* ]]
	run plugin remove opencode
	fails_with 125 "'opencode.jsonc' has an entry 'agentkernel' already"
	run plugin remove opencode --force
	[ "$status" -eq 0 ]
	[[ "$output" == "removed: opencode.jsonc
removed: .opencode/opencode.jsonc"* ]]
	[ -z "$(ls -A)" ]
}

@test "plugin install: an empty settings file is begun, an empty object filled" {
	put .mcp.json </dev/null
	echo '{}' | put opencode.json
	run plugin install mcp opencode
	[ "$status" -eq 0 ]
	[[ "$output" == *"changed: .mcp.json" ]]
	[ "$(json .mcp.json mcpServers agentkernel)" = "$(entry)" ]
	[ "$(json opencode.json mcp agentkernel type)" = '"local"' ]
}

# ---- conflicts ----

@test "plugin install: something else in its place is replaced with --force only" {
	echo '{"mcpServers": {"agentkernel": {"command": "evil"}, "x": {}}}' | put .mcp.json
	nothing_changes 125 "'.mcp.json' has an entry 'agentkernel' already that is not what agentkernel writes (--force replaces it)" -- install all
	run plugin install claude --force
	[ "$status" -eq 0 ]
	[ "$(json .mcp.json mcpServers agentkernel)" = "$(entry)" ]
	[ "$(json .mcp.json mcpServers x)" = "{}" ]
	echo "my own" | put .claude/commands/sandbox.md
	nothing_changes 125 "'.claude/commands/sandbox.md' is there already and is not what agentkernel writes (--force replaces it)" -- install claude
	nothing_changes 125 "(--force removes it)" -- remove claude
	run --separate-stderr plugin install claude --force
	[[ "$output" == *"changed: .claude/commands/sandbox.md" ]]
	cmp .claude/commands/sandbox.md "$TOP/src/agents/plugin/command.md"
	printf '[mcp_servers.agentkernel]\ncommand = "evil"\n' | put .codex/config.toml
	nothing_changes 125 "'.codex/config.toml' has an entry" -- install codex
	run plugin install codex -f
	[ "$status" -eq 0 ]
	grep -q "command = \"$AK\"" .codex/config.toml
}

@test "plugin install: settings that do not parse leave every file as it was" {
	printf '{\n  "theme": "x",\n}\n' | put .gemini/settings.json
	nothing_changes 125 "nothing was changed: .gemini/settings.json:2:15: a comma before '}' is not allowed here" -- install all
	nothing_changes 125 ".gemini/settings.json:2:15" -- install all --force
	as rm .gemini/settings.json
	printf '{"mcpServers": {} // no\n}' | put .mcp.json
	nothing_changes 125 ".mcp.json:1:19: comments are not allowed here" -- install claude
	printf '{"a": "\xff"}' | put .mcp.json
	nothing_changes 125 ".mcp.json:1:8: not UTF-8: byte 0xff" -- install all
	printf '{"mcpServers": []}' | put .mcp.json
	nothing_changes 125 ".mcp.json:1:16: 'mcpServers' is an array where an object is expected" -- install all --force
	as rm .mcp.json
	printf 'a = 1\nb = = 2\n' | put .codex/config.toml
	nothing_changes 125 ".codex/config.toml:2:5" -- install all
	printf '{"mcp": {}' | put .opencode/opencode.json
	nothing_changes 125 ".opencode/opencode.json:1:11: ',' or '}' is expected: end of file" -- install opencode
}

@test "plugin install: what is no regular file, too large or not to be read is left alone" {
	as mkdir .mcp.json
	nothing_changes 125 "'.mcp.json' is not a regular file" -- install all
	as rmdir .mcp.json
	as mkfifo .mcp.json
	nothing_changes 125 "'.mcp.json' is not a regular file" -- install all
	as rm .mcp.json
	as truncate -s 17M .mcp.json
	nothing_changes 125 "'.mcp.json' is larger than 16 MiB" -- install all
	as rm .mcp.json
	echo x | put .claude
	nothing_changes 125 "'.claude/skills/agentkernel/SKILL.md': a file is where a directory should be" -- install all
	as rm .claude
	if [ "${AS:-root}" = user ]; then
		echo '{}' | put .mcp.json
		as chmod 000 .mcp.json
		nothing_changes 125 "open '.mcp.json': Permission denied" -- install all
		as chmod 600 .mcp.json
		as mkdir .opencode
		as chmod 500 .opencode
		nothing_changes 125 "Permission denied" -- install all
		as chmod 700 .opencode
	fi
}

@test "plugin install: a full disk leaves the old files, and nothing beside them" {
	only_root
	unshare --mount bash -c "
		mount -t tmpfs -o size=64k none '$P' && cd '$P' || exit 9
		echo '{\"mcpServers\": {\"x\": {}}}' > .mcp.json
		head -c 45000 /dev/zero > filler
		before=\$(find . | sort; cat .mcp.json)
		HOME='$H' '$AK' plugin install all; echo \"status \$?\"
		[ \"\$before\" = \"\$(find . | sort; cat .mcp.json)\" ] && echo same
	" >"$W/output" 2>&1
	cat "$W/output"
	grep -q "nothing was changed: .*No space left on device" "$W/output"
	grep -q "^status 125$" "$W/output"
	grep -q "^same$" "$W/output"
}

@test "plugin install --global: without a home nothing can be done" {
	run as env -u HOME "$AK" plugin install claude --global
	fails_with 125 "HOME is not set"
	run as env HOME= "$AK" plugin install claude --global
	fails_with 125 "HOME is not set"
	run as env HOME=relative "$AK" plugin install claude --global
	fails_with 125 "HOME is 'relative', which is not an absolute path"
	run as env HOME="$H" CODEX_HOME=x "$AK" plugin install codex --global
	fails_with 125 "CODEX_HOME is 'x', which is not an absolute path"
	run as env -u HOME "$AK" plugin install claude
	[ "$status" -eq 0 ]
}

# ---- a project from elsewhere ----

@test "plugin install: no link of a project is followed" {
	echo '{}' | put "$W/elsewhere/settings.json"
	as ln -s ../elsewhere/settings.json .mcp.json
	nothing_changes 125 "'.mcp.json' is a symbolic link, and links in a project are not followed" -- install all --force
	nothing_changes 125 "'.mcp.json' is a symbolic link" -- remove all --force
	as rm .mcp.json
	as ln -s "$W/nowhere" .mcp.json
	nothing_changes 125 "'.mcp.json' is a symbolic link" -- install all --force
	as rm .mcp.json
	as ln -s ../elsewhere .claude
	nothing_changes 125 "'.claude' is a symbolic link" -- install all --force
	as rm .claude
	as mkdir .claude
	as ln -s "$W/elsewhere" .claude/skills
	nothing_changes 125 "'.claude/skills' is a symbolic link" -- install claude --force
	as rm .claude/skills
	# also a link that stays inside
	as mkdir real
	as ln -s real .opencode
	nothing_changes 125 "'.opencode' is a symbolic link" -- install opencode --force
	# the same links in a home are followed
	as rm .opencode
	as ln -s ../elsewhere/settings.json .mcp.json
	run plugin install claude --global
	[ "$status" -eq 0 ]
}

@test "plugin install --global: a user's links are followed, and stay links" {
	echo '{"keep": 1}' | put "$W/elsewhere/claude.json"
	chmod 640 "$W/elsewhere/claude.json"
	as ln -s ../elsewhere/claude.json "$H/.claude.json"
	as mkdir "$W/elsewhere/dot"
	as ln -s "$W/elsewhere/dot" "$H/.claude"
	run plugin install claude --global
	[ "$status" -eq 0 ]
	[ -L "$H/.claude.json" ]
	[ -L "$H/.claude" ]
	[ "$(json "$W/elsewhere/claude.json" keep)" = 1 ]
	[ "$(json "$W/elsewhere/claude.json" mcpServers agentkernel)" = "$(entry)" ]
	[ "$(stat -c %a "$W/elsewhere/claude.json")" = 640 ]
	[ -f "$W/elsewhere/dot/skills/agentkernel/SKILL.md" ]
	run plugin remove claude --global
	[ "$status" -eq 0 ]
	[ -L "$H/.claude.json" ]
	[ "$(json "$W/elsewhere/claude.json")" = '{"keep": 1}' ]
	# a settings file with only our entry stays behind its link, empty
	echo '{}' | put "$W/elsewhere/claude.json"
	run plugin install claude --global
	run plugin remove claude --global
	[ -L "$H/.claude.json" ]
	[ "$(json "$W/elsewhere/claude.json")" = '{}' ]
	as rm "$W/elsewhere/claude.json"
	nothing_changes 125 "'$H/.claude.json' is a link to something that is not there" -- install claude --global
}

@test "what plugin install wrote cannot be changed from inside a workspace" {
	run plugin install all
	echo '{}' | put opencode.jsonc
	echo old | put other
	before=$(snapshot "$P" | grep -v /other)
	mapfile -t files < <(find . -type f ! -name other)
	for file in "${files[@]}"; do
		run ak run --workspace sh -c "echo evil >> $file"
		[ "$status" -ne 0 ]
		[[ "$output" == *"Read-only file system"* ]]
	done
	run ak run --workspace sh -c "mv .agents .a || mv opencode.json o"
	[ "$status" -ne 0 ]
	diff <(echo "$before") <(snapshot "$P" | grep -v /other)
	# control: names that belong to no agent are writable
	run ak run --workspace sh -c "echo new >> other"
	[ "$(cat other)" = $'old\nnew' ]
}

# ---- reporting ----

@test "plugin install --dry-run: tells and writes nothing" {
	echo '{"mcpServers": {}}' | put .mcp.json
	before=$(snapshot "$W")
	run plugin install claude --dry-run
	says "would be changed: .mcp.json
would be created: .claude/skills/agentkernel/SKILL.md
would be created: .claude/commands/sandbox.md"
	diff <(echo "$before") <(snapshot "$W")
	run plugin install claude
	before=$(snapshot "$W")
	run plugin install claude --dry-run
	[[ "$output" == "unchanged: .mcp.json"* ]]
	run plugin remove claude --dry-run
	says "would be removed: .mcp.json
would be removed: .claude/skills/agentkernel/SKILL.md
would be removed: .claude/commands/sandbox.md"
	diff <(echo "$before") <(snapshot "$W")
}

@test "plugin remove: all of it goes, and what others use stays" {
	run plugin install all
	run plugin remove codex
	says "removed: .codex/config.toml
kept (another client uses it): .agents/skills/agentkernel/SKILL.md"
	run plugin remove mcp
	says "kept (another client uses it): .mcp.json"
	run plugin remove gemini
	[[ "$output" == *"removed: .agents/skills/agentkernel/SKILL.md"* ]]
	run plugin remove claude opencode
	[ "$status" -eq 0 ]
	[ -z "$(ls -A)" ]
	run plugin remove all
	says "agentkernel: nothing of agentkernel's is there"
	run plugin install all --global
	echo x | put "$H/.claude/settings.json"
	run plugin remove all --global
	[ "$status" -eq 0 ]
	[ "$(find "$H" -type f)" = "$H/.claude/settings.json" ]
	[ ! -e "$H/.agents" ]
}

@test "plugin list: what is where, and one bad file spoils nothing" {
	run plugin install claude
	echo '{"mcpServers": {"agentkernel": 1}}' | put .gemini/settings.json
	printf '{\n' | put opencode.json
	as ln -s /etc/passwd .codex
	run --separate-stderr plugin list
	[ "$status" -eq 0 ]
	[ "$(awk '$2 == "project" { print $1, $3 }' <<<"$output")" = "claude installed
codex unreadable
gemini changed
opencode unreadable
mcp installed" ]
	[ "$(awk '$2 == "global" { print $1, $3, $4 }' <<<"$output")" = "claude not installed
codex not installed
gemini not installed
opencode not installed" ]
	[[ "$output" == *"~/.claude.json, ~/.claude/skills/agentkernel/SKILL.md"* ]]
	[[ "$stderr" == *"agentkernel: '.codex' is a symbolic link"* ]]
	[[ "$stderr" == *"agentkernel: opencode.json:2:1: a key in double quotes is expected: end of file"* ]]
	run --separate-stderr plugin list --json
	[ -z "$stderr" ]
	echo "$output" >"$W/list.json"
	[ "$(json "$W/list.json" 0)" = '{"client": "claude", "files": [{"error": null, "path": ".mcp.json", "state": "installed"}, {"error": null, "path": ".claude/skills/agentkernel/SKILL.md", "state": "installed"}, {"error": null, "path": ".claude/commands/sandbox.md", "state": "installed"}], "scope": "project", "state": "installed"}' ]
	[[ "$(json "$W/list.json" 2 files 0 error)" == *"is a symbolic link"* ]]
}

@test "plugin list: a part, a change, and another client's files" {
	run plugin install gemini
	# gemini's skill is codex's too, and does not make codex installed
	run plugin list
	[ "$(awk '$2 == "project" { print $1, $3 }' <<<"$output")" = "claude not
codex not
gemini installed
opencode not
mcp not" ]
	as rm .gemini/commands/sandbox.toml
	run plugin list
	[[ "$output" == *"gemini    project  changed"* ]]
	run plugin install mcp
	run plugin list
	[[ "$output" == *"claude    project  not installed"* ]]
	[[ "$output" == *"mcp       project  installed"* ]]
	run as env -u HOME "$AK" plugin list
	[ "$status" -eq 0 ]
	[[ "$output" == *"claude    global   unreadable     ?, ?, ?"* ]]
	[[ "$output" == *"HOME is not set"* ]]
}

@test "plugin: words that are not right" {
	run plugin install
	fails_with 125 "missing argument (usage: agentkernel plugin install claude|codex|gemini|opencode|mcp|all"
	run plugin install clade
	fails_with 125 "no client 'clade', did you mean 'claude'?"
	run plugin install emacs
	fails_with 125 "no client 'emacs' (use claude, codex, gemini, opencode, mcp or all)"
	run plugin list claude
	fails_with 125 "unexpected argument 'claude'"
	run plugin isntall claude
	fails_with 125 "did you mean 'plugin install'?"
	[ -z "$(ls -A)" ]
}
