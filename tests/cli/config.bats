#!/usr/bin/env bats
# agentkernel.toml: which file applies, what it may set, and that nothing an agent writes in its
# workspace changes what the next run may do.
load helpers
bats_require_minimum_version 1.5.0

setup() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	mkdir "$W/project" "$W/home"
	own "$W"
	cd "$W/project" || return 1
}

own() {
	[ "${AS:-root}" != user ] || chown -R -h 12345:12345 "$@"
}

# ak COMMAND...: as the caller of this round, with its own home and state
ak() {
	as env -u XDG_CONFIG_HOME HOME="$W/home" AGENTKERNEL_HOME="$W/home/state" "$AK" "$@" 3>&-
}

# write FILE: stdin into a file of the caller
write() {
	mkdir -p "$(dirname "$1")"
	cat >"$1"
	own "$W"
}

# value FIELD [options]: the value in policy show, and its origin
value() {
	local field=$1
	shift
	ak policy show --json "$@" | python3 -c 'import json, sys
v = json.load(sys.stdin)[sys.argv[1]]; print(v["value"], "|", v["set_by"])' "$field"
}

# ---- which file applies ----

@test "the project's file is found upward to the repository's root, and not beyond" {
	mkdir -p repo/a/b
	write repo/.git/HEAD <<<ref
	write repo/agentkernel.toml <<<'resources.pids = 100'
	write agentkernel.toml <<<'resources.pids = 200'
	cd repo/a/b
	[ "$(value pids)" = "100 | $W/project/repo/agentkernel.toml:1" ]
	write ../agentkernel.toml <<<'resources.pids = 50' # the first one upward
	[ "$(value pids)" = "50 | $W/project/repo/a/agentkernel.toml:1" ]
	rm ../agentkernel.toml "$W/project/repo/agentkernel.toml"
	[ "$(value pids)" = "1024 | default" ]
	write ../agentkernel.toml <<<'resources.pids = 50'
	echo 'gitdir: x' >.git # a worktree's root counts too
	[ "$(value pids)" = "1024 | default" ]
}

@test "a name that a sandbox keeps free does not hide the project's file" {
	mkdir -p sub
	write .git/HEAD <<<ref
	write agentkernel.toml <<<'resources.pids = 50'
	cd sub
	ak run --workspace --protect-new strict --timeout 20s sh -c 'touch up; until [ -e go ]; do sleep 0.05; done' &
	until [ -e up ]; do sleep 0.05; done
	[ -d .git ]
	[ "$(value pids)" = "50 | $W/project/agentkernel.toml:1" ]
	touch go
	wait $!
}

@test "without a repository only the working directory counts" {
	write agentkernel.toml <<<'resources.pids = 100'
	mkdir sub
	[ "$(value pids)" = "100 | agentkernel.toml:1" ]
	cd sub
	[ "$(value pids)" = "1024 | default" ]
}

@test "the user's own file counts below the project's, and that below the options" {
	write "$W/home/.config/agentkernel/config.toml" <<-'END'
	[resources]
	pids = 100
	memory = "1GiB"
	nofile = 500
	END
	write agentkernel.toml <<-'END'
	[resources]
	pids = 50
	memory = "512MiB"
	END
	[ "$(value pids --pids 20)" = "20 | --pids" ]
	[ "$(value memory)" = "512 MiB | agentkernel.toml:3" ]
	[ "$(value nofile)" = "500 | ~/.config/agentkernel/config.toml:4" ]
	[ "$(value pids --no-config)" = "1024 | default" ]
	run as env HOME="$W/home" XDG_CONFIG_HOME="$W/xdg" "$AK" policy show
	[[ "$output" != *config.toml* ]]
	write "$W/xdg/agentkernel/config.toml" <<<'resources.nofile = 600'
	run as env HOME="$W/home" XDG_CONFIG_HOME="$W/xdg" "$AK" policy show
	[[ "$output" == *"nofile"*"600"*"$W/xdg/agentkernel/config.toml:1"* ]]
}

@test "--config takes another file, which is trusted by being named" {
	write agentkernel.toml <<<'resources.pids = 50'
	write "$W/other.toml" <<-'END'
	security.profile = "permissive"
	END
	[ "$(value profile --config "$W/other.toml")" = "permissive | $W/other.toml:1" ]
	[ "$(value pids -c ../other.toml)" = "4096 | $W/other.toml:1" ]
	run ak run --config "$W/none.toml" true
	fails_with 125 "--config: '$W/none.toml' does not exist"
	run ak run --config "$W/other.toml" --no-config true
	fails_with 125 "--config and --no-config exclude each other"
	run ak run --config "$W" true
	fails_with 125 "'$W' is not a plain file"
	ln -s other.toml "$W/link.toml"
	[ "$(value profile --config "$W/link.toml")" = "permissive | $W/link.toml:1" ] # given explicitly, so the link is followed
}

@test "a file that is none: a link, a fifo, a directory, too large, not readable" {
	write "$W/real.toml" <<<'resources.pids = 50'
	ln -s "$W/real.toml" agentkernel.toml
	run ak run true
	fails_with 125 "'$W/project/agentkernel.toml' is a link"
	ln -sfn "$W/nowhere" agentkernel.toml
	run ak run true
	fails_with 125 "'$W/project/agentkernel.toml' is a link"
	rm agentkernel.toml
	mkfifo agentkernel.toml
	own .
	run timeout 5 bash -c "$(declare -f as ak); W=$W; AS=$AS; ak run true"
	fails_with 125 "'$W/project/agentkernel.toml' is not a plain file"
	run timeout 5 bash -c "$(declare -f as ak); W=$W; AS=$AS; ak init --force"
	[ "$status" -eq 125 ]
	rm agentkernel.toml
	mkdir agentkernel.toml # a sandbox's placeholder: the same as no file
	own .
	ak run true
	rmdir agentkernel.toml
	head -c 1048577 /dev/zero | tr '\0' '#' >agentkernel.toml
	own .
	run ak run true
	fails_with 125 "'$W/project/agentkernel.toml' is larger than 1048576 bytes"
	if [ "${AS:-root}" != root ]; then
		chmod 0 agentkernel.toml
		run ak run true
		fails_with 125 "read '$W/project/agentkernel.toml': Permission denied"
	fi
}

@test "mistakes are told with file, line, column and what was meant" {
	write agentkernel.toml <<<'[sandbox'
	run ak run true
	[ "$status" -eq 125 ]
	[[ "$output" == "agentkernel: agentkernel.toml:1:9: "* ]]
	write agentkernel.toml <<<'[resources]
memroy = "1G"'
	run ak config check
	fails_with 125 "agentkernel.toml:2:1: unknown key 'memroy' in [resources], did you mean 'memory'?"
	write agentkernel.toml <<<'[resources]
memory = "lots"'
	run ak run true
	fails_with 125 "agentkernel.toml:2: size 'lots' does not start with a digit"
	write agentkernel.toml <<<'[sandbox]
image = "\u001b[31mred"'
	run ak run -i host true
	[[ "$output" != *$'\033'* ]]
	write agentkernel.toml <<<'[registries."registry.example.org"]'
	run ak run true
	fails_with 125 "only your own config.toml can say how images are fetched"
	write "$W/home/.config/agentkernel/config.toml" <<<'[resources'
	rm agentkernel.toml
	run ak run true
	fails_with 125 "~/.config/agentkernel/config.toml:1:11: "
}

# ---- what it may set ----

@test "taking away needs no trust" {
	write agentkernel.toml <<-'END'
	[security]
	profile = "restrictive"
	mask = [".env"]
	protect = ["deploy"]
	[resources]
	memory = "64MiB"
	timeout = "20s"
	END
	run ak run sh -c 'id -u; touch /x 2>/dev/null || echo read-only'
	says "1000
read-only"
	run ak config check
	says "$W/project/agentkernel.toml: ok, needs no trust"
	write agentkernel.toml <<<'network.block = ["*.example.org"]'
	run ak network check x.example.org
	[ "$status" -eq 1 ]
	[[ "$output" == *"rule '*.example.org' (agentkernel.toml:1)"* ]]
}

@test "what a project's file asks for beyond the user's own is left out, with one warning that names the line" {
	while IFS='|' read -r line words; do
		write agentkernel.toml <<<"# a comment
$line"
		run --separate-stderr ak run echo ran
		[ "$output" = ran ]
		[ "${#stderr_lines[@]}" -eq 1 ]
		[[ "$stderr" == "agentkernel: agentkernel.toml asks for more than you allow, and that is left out: agentkernel.toml:2: $words"*"agentkernel config trust"* ]] || { echo "$line: $stderr"; false; }
		run -0 ak config check
		[[ "${lines[1]}" == "  agentkernel.toml:2: $words"* ]]
	done <<-END
	security.mount_cwd = true|workspace = '$W/project' goes beyond 'none' (default)
	security.mount_home = true|home = '$W/home (read-only, credentials masked)' goes beyond 'none' (default)
	security.profile = "permissive"|workspace = '$W/project' goes beyond 'none' (default)
	agent.mode = "claude"|workspace = '$W/project' goes beyond 'none' (default)
	security.unprotect = [".git/hooks"]|unprotect = '.git/hooks' goes beyond 'none' (default)
	security.unmask = [".ssh"]|unmask = '.ssh' goes beyond 'none' (default)
	security.pass_env = ["HOME"]|env = 'HOME' goes beyond 'none' (default)
	resources.memory = "3GiB"|memory = '3 GiB' goes beyond '2 GiB' (default)
	resources.pids = 2000|pids = '2000' goes beyond '1024' (default)
	network.allow = ["10.0.0.0/8"]|allow-host = '10.0.0.0/8' goes beyond 'none' (default)
	network.allow = ["localhost:22"]|allow-host = 'host.agentkernel.internal:22' goes beyond 'none' (default)
	mounts = [{ source = "/etc", target = "/e", read_only = true }]|mount = '/etc at /e (read-only)' goes beyond 'none' (default)
	END
	write agentkernel.toml <<<'sandbox.image = "registry.example.org/evil"'
	run as env -u AGENTKERNEL_IMAGE HOME="$W/home" "$AK" run true
	[ "$status" -eq 0 ]
	[[ "$output" == *"agentkernel.toml:1: image = 'registry.example.org/evil' goes beyond 'host' (default)"* ]]
}

# The policy with the project's file must equal the policy without, except for restrictions.
@test "nothing of what is left out is in effect, and what takes away is" {
	write agentkernel.toml <<-'END'
	[security]
	profile = "permissive"
	unprotect = [".vscode"]
	[resources]
	memory = "64GiB"
	pids = 64
	[network]
	block = ["ads.example.org"]
	[[mounts]]
	source = "/etc"
	target = "/e"
	END
	run --separate-stderr ak run sh -c 'ls /e 2>&1; pwd; ulimit -a >/dev/null; echo "$HOME"'
	[[ "$output" != *passwd* && "$output" != *"$W"* ]]
	[[ "$(value memory)" == "2 GiB | "* ]]
	[ "$(value pids)" = "64 | agentkernel.toml:6" ]
	[[ "$(value workspace)" == "none | "* ]]
	[[ "$(value home)" == "none | "* ]]
	[[ "$(value environment)" == "clean | "* ]]
	run ak network check ads.example.org
	[ "$status" -eq 1 ]
}

@test "what the user allows is the ceiling, wherever it is said" {
	write agentkernel.toml <<-'END'
	[security]
	mount_cwd = true
	[network]
	allow = ["evil.example.org"]
	END
	ak run --workspace true
	run ak run --workspace --network-policy deny --allow-host good.example.org true
	[[ "$output" == *"agentkernel.toml:4: allow-host = 'evil.example.org' goes beyond 'good.example.org' (--allow-host)"* ]]
	run ak network check --network-policy deny --allow-host good.example.org evil.example.org
	[ "$status" -eq 1 ]
	run ak run -m claude true
	[[ "$output" == *"agentkernel.toml:4: allow-host = 'evil.example.org' goes beyond "* ]]
	write "$W/home/.config/agentkernel/config.toml" <<<'security.mount_cwd = true'
	ak run true
	write agentkernel.toml <<<'security.profile = "moderate"'
	run ak run -p restrictive true # the command line overrides the file
	[ "$status" -eq 0 ]
	write "$W/home/.config/agentkernel/config.toml" <<<'security.profile = "restrictive"'
	run --separate-stderr ak run id -u
	[ "$output" = 1000 ]
	[[ "$stderr" == *"agentkernel.toml:1: user = '0:0' goes beyond '1000:1000' (~/.config/agentkernel/config.toml:1)"* ]]
}

@test "a mount that an option asks for is not taken for the project's" {
	write agentkernel.toml <<<'mounts = [{ source = "/etc", target = "/e" }]'
	run --separate-stderr ak run --mount /usr:/u:ro sh -c 'ls -d /u /e 2>/dev/null'
	[ "$output" = /u ]
	[[ "$stderr" == *"agentkernel.toml:1: "* ]]
}

@test "trust is bound to the content, byte by byte, and to the place" {
	write agentkernel.toml <<<'security.mount_cwd = true'
	run -0 ak config check
	[[ "${lines[0]}" == "$W/project/agentkernel.toml: ok, not trusted"* ]]
	[[ "${lines[1]}" == *"agentkernel.toml:1: workspace = "* ]]
	run ak config trust
	says "agentkernel: '$W/project/agentkernel.toml' is trusted until it changes ('agentkernel policy show' tells what it allows)"
	run ak config check
	says "$W/project/agentkernel.toml: ok, trusted"
	run ak run pwd
	says "$W/project"
	touch agentkernel.toml # the content matters, not the time
	ak run true
	cp agentkernel.toml "$W/kept"
	printf ' ' >>agentkernel.toml
	run --separate-stderr ak run pwd
	[ "$output" != "$W/project" ]
	cp "$W/kept" agentkernel.toml # the old content: trusted again
	own .
	ak run true
	mkdir ../other
	cp agentkernel.toml ../other
	own ../other
	cd ../other
	run --separate-stderr ak run pwd
	[ "$output" != "$W/other" ]
	cd ../project
	ak config distrust
	run --separate-stderr ak run pwd
	[ "$output" != "$W/project" ]
	run ak config distrust
	fails_with 125 "'$W/project/agentkernel.toml' was not trusted"
	ak config trust agentkernel.toml # by name
	ak run true
}

@test "only a file that means something can be trusted" {
	run ak config trust
	fails_with 125 "no agentkernel.toml here ('agentkernel init' writes one)"
	write agentkernel.toml <<<'x = 1'
	run ak config trust
	fails_with 125 "unknown table 'x'"
	run ak config trust none.toml
	fails_with 125 "'$W/project/none.toml' does not exist"
	write "$W/real.toml" <<<'security.mount_cwd = true'
	ln -sf "$W/real.toml" agentkernel.toml
	run ak config trust
	fails_with 125 "is a link"
	[ -z "$(ls "$W/home/state/trust" 2>/dev/null)" ]
}

@test "what trusts a file is the user's alone" {
	write agentkernel.toml <<<'security.mount_cwd = true'
	ak config trust
	[ "$(stat -c %a "$W/home/state" "$W/home/state/trust" | sort -u)" = 700 ]
	[ "$(stat -c %a "$W"/home/state/trust/*)" = 600 ]
	run ak run --mount "$W/home:/h" ls /h/state
	says ""
}

@test "config check FILE says nothing about trust" {
	write other.toml <<<'security.profile = "permissive"'
	run ak config check other.toml
	says "$W/project/other.toml: ok"
	run ak config check --json other.toml
	says "{\"project\":\"$W/project/other.toml\",\"applies\":true,\"left_out\":[]}"
	rm other.toml
	run ak config check
	says "no configuration file counts here ('agentkernel init' writes one)"
	write "$W/home/.config/agentkernel/config.toml" <<<'resources.pids = 7'
	write agentkernel.toml <<<'resources.pids = 8'
	run --separate-stderr -0 ak config check --json
	says "{\"user\":\"$W/home/.config/agentkernel/config.toml\",\"project\":\"$W/project/agentkernel.toml\",\"trusted\":false,\"applies\":false,\"left_out\":[\"agentkernel.toml:1: pids = '8' goes beyond '7' (~/.config/agentkernel/config.toml:1)\"]}"
}

# ---- init ----

@test "init writes a file that config check accepts, for every kind of project" {
	while read -r name image; do
		mkdir "$W/$name-project"
		touch "$W/$name-project/$name"
		own "$W/$name-project"
		cd "$W/$name-project"
		ak init 2>/dev/null
		run ak config check
		says "$PWD/agentkernel.toml: ok, trusted"
		run grep '^image' agentkernel.toml
		[[ "$output" == "image = \"$image\"    # detected from '$name'" ]]
	done <<-'END'
	package.json node:22-alpine
	requirements.txt python:3.12-alpine
	go.mod golang:1.23-alpine
	Makefile gcc:14-bookworm
	main.tf hashicorp/terraform:1.10
	END
	cd "$W/project"
	run ak init
	says "agentkernel: wrote agentkernel.toml, which is in effect (after a change of yours, 'agentkernel config trust' puts that into effect too)"
	run ! grep '^image' agentkernel.toml
	for mode in claude codex gemini; do
		ak init --force -m "$mode" 2>/dev/null
		[[ "$(value compatibility-mode)" == "$mode | agentkernel.toml:"* ]]
	done
}

@test "init does not overwrite, follow or be talked into anything" {
	write agentkernel.toml <<<'# mine'
	run ak init
	fails_with 125 "agentkernel.toml is there already (--force replaces it)"
	[ "$(cat agentkernel.toml)" = '# mine' ]
	rm agentkernel.toml
	echo keep >"$W/target"
	ln -s "$W/target" agentkernel.toml
	run ak init --force
	[ "$status" -eq 125 ]
	[ "$(cat "$W/target")" = keep ]
	rm agentkernel.toml
	# names of files go into a comment of the template
	touch $'x\n[security]\nprofile = "permissive"\n#.tf' $'\xff.tf'
	own .
	ak init 2>/dev/null
	[[ "$(value profile)" != permissive* ]]
	run ak init -m evil
	fails_with 125 "no mode 'evil' (use native, claude, codex or gemini)"
	mkdir "$W/Quo\"te[1] X"
	own "$W"
	cd "$W/Quo\"te[1] X"
	run ak init --print
	[[ "$output" == *'name = "quote1x"'* ]]
	[ -z "$(ls)" ]
}

# ---- policy show ----

@test "policy show names file and line of every value" {
	write agentkernel.toml <<-'END'
	[agent]
	mode = "codex"

	[resources]
	memory = "256MiB"
	[network]
	block = [
	  "a.example.org",
	  "b.example.org",
	]
	[env]
	A = "1"
	END
	ak config trust 2>/dev/null
	[ "$(value compatibility-mode)" = "codex | agentkernel.toml:2" ]
	[ "$(value profile)" = "restrictive | agentkernel.toml:2" ]
	[ "$(value workspace)" = "$W/project | agentkernel.toml:2" ]
	[ "$(value memory)" = "256 MiB | agentkernel.toml:5" ]
	[ "$(value block-host)" = "a.example.org, b.example.org | agentkernel.toml:9" ]
	[ "$(value env)" = "A | agentkernel.toml:12" ]
	[ "$(value disk)" = "128 MiB | half of memory" ]
	run ak policy show
	[[ "$output" == *"... (--json has all)"* ]]
	run ak network check a.example.org
	[[ "$output" == *"agentkernel.toml:8"* ]]
}

# ---- [sandbox] name and init ----

@test "init runs first in a run's sandbox, in its directory, and says where it failed" {
	write agentkernel.toml <<-'END'
	[sandbox]
	init = '''
	echo noise
	pwd >/tmp/made; cat >>/tmp/made'''
	END
	run --separate-stderr ak run --workspace sh -c 'cat /tmp/made; echo then; cat' <<<input
	says "$W/project
then
input"
	[ "$stderr" = noise ]
	write agentkernel.toml <<<'sandbox.init = "exit 7"'
	run ak run echo never
	says "agentkernel: [sandbox] init failed"
	[ "$status" -eq 125 ]
	run ak run --no-config echo runs
	says runs
	write agentkernel.toml <<<'sandbox.init = "true # and a comment"'
	run ak run sh -c 'echo "$0 $1"; exit 3' a 'b  c'
	[ "$status" -eq 3 ]
	says "a b  c"
}

@test "init of a sandbox that stays runs once, until it succeeds" {
	write agentkernel.toml <<-'END'
	[sandbox]
	name = "from-file"
	init = "pwd >>/made; [ -e ready ]"
	END
	ak create --workspace
	run ak start from-file
	fails_with 125 "start sandbox 'from-file': [sandbox] init ended with 1: "
	[ "$(ak info from-file | sed -n 's/^state *//p')" = stopped ]
	touch ready
	ak start from-file
	ak restart from-file
	run ak exec from-file cat /made
	says "$W/project
$W/project"
	ak remove -f from-file
	run ak run --name kept --workspace cat /made
	[ "${lines[0]}" = "$W/project" ]
	ak remove -f kept
}

@test "the file's name is for create alone, and is checked" {
	write agentkernel.toml <<<'sandbox.name = "../../evil"'
	run ak create
	[ "$status" -eq 125 ]
	[[ "$output" == *"'../../evil'"* ]]
	[ ! -e "$W/home/evil" ]
	rm agentkernel.toml
	run ak create
	fails_with 125 "missing argument NAME: agentkernel sandbox create NAME [options]"
	[ -z "$(ak list --all --quiet)" ]
}

# ---- files that an agent writes ----

@test "nothing an agent writes in its workspace changes the next run" {
	write "$W/home/.config/agentkernel/config.toml" <<<'security.mount_cwd = true'
	cp "$BATS_TEST_DIRNAME/attack.py" "$W/attack.py"
	own "$W"
	git init -q .
	own .
	before=$(ak policy show --json)
	for round in absent present; do
		ak run --mount "$W/attack.py:/attack.py:ro" python3 /attack.py .git/ .git/config >/dev/null
		# and names that it may write
		ak run sh -c 'echo "[security]" >AGENTKERNEL.toml; mkdir -p .config/agentkernel ~/.config/agentkernel .agentkernel
			for f in .config/agentkernel ~/.config/agentkernel .agentkernel; do echo "security.profile = \"permissive\"" >$f/config.toml; done
			touch package.json Makefile main.tf'
		if [ "$round" = absent ]; then
			[ ! -e agentkernel.toml ]
			[ "$(ak policy show --json)" = "$before" ]
			write agentkernel.toml <<<'resources.pids = 77'
			before=$(ak policy show --json)
		else
			[ "$(cat agentkernel.toml)" = 'resources.pids = 77' ]
			[ "$(ak policy show --json)" = "$before" ]
		fi
	done
	[ "$(value pids)" = "77 | agentkernel.toml:1" ]
}

# The policy's values without their origins.
values() {
	ak policy show --json "$@" 2>/dev/null | python3 -c '
import json, sys
print(sorted((k, str(v.get("value"))) for k, v in json.load(sys.stdin).items() if isinstance(v, dict)))'
}

@test "an agentkernel.toml that an agent writes can only take away, also in the place of a trusted one" {
	write "$W/home/.config/agentkernel/config.toml" <<<'security.mount_cwd = true'
	before=$(ak policy show --json)
	before_values=$(values)
	for text in 'security.profile = "permissive"' 'security.mount_home = true' 'mounts = [{ source = "/etc", target = "/e" }]' 'resources.memory = "64GiB"'; do
		ak run --no-config --workspace sh -c "echo '$text' >agentkernel.toml"
		run ak run true
		[[ $output == *"asks for more than you allow, and that is left out"* ]] || { echo "$text: $output"; return 1; }
		[ "$(values)" = "$before_values" ] || { echo "$text: another policy"; return 1; }
	done
	write agentkernel.toml <<<'resources.memory = "3GiB"'
	ak config trust >/dev/null
	[ "$(value memory)" = "3 GiB | agentkernel.toml:1" ] # control: a trusted file applies
	ak run --workspace sh -c "echo 'resources.memory = \"4GiB\"' >agentkernel.toml"
	run ak run true
	[[ $output == *"asks for more than you allow, and that is left out"* ]]
	rm agentkernel.toml
	[ "$(ak policy show --json)" = "$before" ]
}
