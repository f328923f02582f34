#!/usr/bin/env bats
# A workspace shows exactly its directory: no additional name appears in it, and if a sandbox
# creates a name that a program outside would run or obey, it is moved away. The canary is a program
# that git outside would run.
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
	load_shared
}

setup() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	[ "${AS:-root}" != user ] || chown 12345:12345 "$W"
	mkdir "$W/project"
	CANARY=$W/canary
	printf '#!/bin/sh\necho ran >>%s\n' "$CANARY.ran" >"$CANARY"
	chmod 755 "$CANARY"
	own "$W"
	cd "$W/project" || return 1
}

own() {
	[ "${AS:-root}" != user ] || chown -R -h 12345:12345 "$@"
}

git_() {
	as git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main -c protocol.file.allow=always "$@"
}

# repository DIR: with a commit in it
repository() {
	git_ init -q "$1"
	echo first >"$1/file"
	own "$1"
	git_ -C "$1" add file
	git_ -C "$1" commit -q -m first
}

# inside [run's options] -- TEXT: a shell in a sandbox whose workspace is the current directory
inside() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	ak run --workspace "${options[@]}" sh -c "$1"
}

# Runs common git commands in every directory outside.
use_git() {
	local dir
	find . -name .git -prune -o -type d -print0 | while IFS= read -r -d '' dir; do
		(cd "$dir" && for words in "status --short" "diff" "log -1" "branch" "stash list" "submodule status" "add -A"; do
			# shellcheck disable=SC2086 # words
			timeout 20 git -c user.name=t -c user.email=t@example.org -c safe.directory='*' $words </dev/null >/dev/null 2>&1 || true
		done)
	done
	git_ -c safe.directory='*' commit -q --allow-empty -m outside >/dev/null 2>&1 || true
}

untouched() {
	use_git
	[ ! -e "$CANARY.ran" ] || { echo "git outside ran the canary"; return 1; }
}

# ---- an empty workspace ----

@test "an empty workspace is empty, inside and outside, before, during and after" {
	[ -z "$(inside -- 'ls -A')" ]
	inside -- 'touch up; until [ -e go ]; do sleep 0.02; done; ls -A >&2' 3>&- 2>"$W/inside" &
	run=$!
	until [ -e up ]; do sleep 0.02; done
	[ "$(ls -A)" = up ]
	touch go
	wait "$run"
	[ "$(cat "$W/inside")" = 'go
up' ]
	rm go up
	[ -z "$(ls -A)" ]
}

@test "a program outside that watches the directory sees nothing of a run" {
	command -v node >/dev/null || skip "no node"
	as node -e 'const fs = require("fs"); const w = fs.watch(".", (kind, name) => console.log(kind, name))
		console.log("up"); setTimeout(() => { w.close() }, 1500)' >"$W/seen" 3>&- &
	watcher=$!
	until grep -q up "$W/seen"; do sleep 0.02; done
	inside -- true
	inside -- 'mkdir one; rmdir one'
	wait "$watcher"
	[ "$(grep -v '^up$' "$W/seen" | sort -u)" = "rename one" ] # control, and nothing else
}

@test "git init, add, commit, clone, branch and worktree work in an empty workspace" {
	only_host
	inside -- 'set -e; git init -q .; git config user.name a; git config user.email a@example.org
		echo x >file; git add file; git commit -q -m inside; git branch other; git worktree add -q tree other
		git clone -q . copy; git -C copy log --format=%s'
	[ "$(git_ -c safe.directory='*' log --format=%s)" = inside ]
	[ "$(git config -f .git/config user.name)" = a ] # harmless settings stay
	[ "$(git_ -c safe.directory='*' -C copy remote)" = origin ]
	git_ -c safe.directory='*' -C tree status >/dev/null
}

@test "what people do in a directory works: clean, remove all, copy, archive, read a name that is not there" {
	only_host
	repository .
	echo junk >junk
	own .
	inside -- 'set -e; git clean -fdxq; test ! -e junk; cp -r . /tmp/copy; tar -cf /tmp/t.tar .; rm -rf ./*; ls -A'
	[ "$(ls -A)" = .git ]
	run inside -- 'cat opencode.json'
	[[ $output == *"No such file"* ]]
}

@test "create-vite takes an empty workspace for an empty directory" {
	only_host
	[ -e "$BUILD/clients/node_modules/create-vite" ] || skip "create-vite could not be installed (tests/clients/install says why)"
	command -v node >/dev/null || skip "no node"
	run ak run --workspace --mount "$BUILD/clients/node_modules/create-vite:/create:ro" node /create/index.js . --template vanilla </dev/null
	[ "$status" -eq 0 ] || { echo "$output"; return 1; }
	[[ $output != *"not empty"* ]]
	[ -e package.json ] && [ -e index.html ]
}

# ---- names that appear ----

@test "a protected name that appears is moved away, told once with the option, kept and audited" {
	run inside -- 'for i in 1 2 3; do mkdir x; echo evil >x/tasks.json; mv x .vscode; while [ -e .vscode ]; do sleep 0.01; done; done; ls -A'
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 1 ] || { echo "$output"; return 1; }
	[[ $output == "agentkernel: '.vscode' was moved to $SHARED/home/state/quarantine/"*"/1/.vscode, since programs outside would obey it (add --unprotect .vscode to keep it)" ]]
	[ -z "$(ls -A)" ]
	kept=${output#*moved to }
	[ "$(cat "${kept%%, since*}/tasks.json")" = evil ]
	ak audit --json --type protected | grep -q "'.vscode' was moved"
}

@test "whatever way it is made, and whatever it is" {
	local name
	for name in .claude .mcp.json .codex .gemini .opencode opencode.json opencode.jsonc .agents .cursor .vscode .idea .zed \
		.devcontainer .devcontainer.json; do
		inside -- "mkdir $name; sleep 0.05" 2>/dev/null
		inside -- "echo evil >$name; sleep 0.05" 2>/dev/null
		inside -- "mkdir -p a/b; echo evil >a/b/x; mv a $name; sleep 0.05" 2>/dev/null
		inside -- "ln -s /etc $name" 2>/dev/null
		inside -- "echo evil >x; ln x $name; rm x" 2>/dev/null
		inside -- "mkfifo $name" 2>/dev/null
		rm -rf a x
		[ -z "$(ls -A)" ] || { echo "after $name: $(ls -A)"; return 1; }
	done
}

@test "a command that ends at once leaves no name behind either" {
	for _ in $(seq 20); do
		inside -- 'mkdir .claude; echo evil >.claude/settings.json; exec true' 2>/dev/null
		[ -z "$(ls -A)" ]
	done
}

@test "--unprotect keeps a name, --protect adds one, strict blocks them" {
	run inside --unprotect .vscode -- 'mkdir .vscode; sleep 0.1; echo x >.vscode/y'
	says ""
	[ -e .vscode/y ]
	inside --protect deploy/keys -- 'mkdir deploy; mkdir deploy/keys; sleep 0.1' 2>/dev/null
	[ "$(ls -A deploy)" = "" ]
	run inside --protect-new strict -- 'mkdir .claude'
	[ "$status" -eq 1 ]
	[ "$(ls -A)" = ".vscode
deploy" ]
	run ak run --workspace --protect-new sometimes true
	fails_with 125 "--protect-new: 'sometimes' is neither watch nor strict"
}

@test "a flood of protected names ends the sandbox, and says why" {
	run inside -- 'while true; do mkdir .vscode 2>/dev/null; done'
	[ "$status" -eq 125 ]
	[[ $output == *"the sandbox made protected names like '.vscode' again and again, and was ended"* ]]
	[ ! -e .vscode ]
}

@test "a name on the way that is a link is taken away, and directories that are exchanged are looked at again" {
	git_ init -q .
	git_ config core.hooksPath tools/hooks
	own .
	inside -- 'mkdir -p real/hooks; ln -s real tools; sleep 0.1' 2>/dev/null
	[ ! -e tools ]
	inside -- 'mkdir tools; mkdir -p x/hooks; sleep 0.05; mv tools y; mv x tools; sleep 0.1' 2>/dev/null
	[ ! -e tools/hooks ]
}

@test "names are moved away where the state lies on another file system" {
	[ -w /dev/shm ] || skip "no other file system"
	local state
	state=$(mktemp -d /dev/shm/agentkernel-test.XXXXXX)
	own "$state"
	run as env AGENTKERNEL_HOME="$state/state" "$AK" run --workspace sh -c 'mkdir -p x/a; echo evil >x/a/b; mv x .vscode; sleep 0.2'
	[ "$status" -eq 0 ]
	[ -z "$(ls -A)" ]
	[ "$(cat "$state"/state/quarantine/*/1/.vscode/a/b)" = evil ]
	rm -rf "$state"
}

@test "names are moved away also when the account has no inotify instance left" {
	only_user # an account that nobody else uses
	as python3 -c '
import ctypes, os, sys, time
c = ctypes.CDLL(None)
n = 0
while c.inotify_init1(0) >= 0:
    n += 1
print("used", n, flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)' "$W/enough" >"$W/used" 3>&- &
	hog=$!
	until grep -q used "$W/used"; do sleep 0.02; done
	run inside -- 'mkdir .vscode; sleep 0.3; ls -A'
	touch "$W/enough"
	wait "$hog"
	[[ $output == *"'.vscode' was moved"* ]]
	[ "$(wc -l <<<"$output")" -eq 1 ]
}

# ---- git: existing repositories ----

@test "control: without protection the canary runs" {
	repository .
	ak run --mount "$W/project" --workdir "$W/project" sh -c "git config core.fsmonitor '$CANARY'"
	use_git
	[ -e "$CANARY.ran" ]
}

@test "a repository below, a separate git directory, a bare one: hooks and settings are read-only" {
	only_host
	repository parent/plain
	git_ init -q --separate-git-dir="$W/project/data" apart
	git_ init -q --bare bare.git
	own .
	for dir in parent/plain/.git data bare.git; do
		run inside -- "echo x >>$dir/config; echo x >$dir/hooks/pre-commit; python3 -c \"
import os
for name in '$dir', '$dir/hooks', 'parent', 'parent/plain':
    try:
        os.rename(name, name + '.moved')
    except OSError:
        pass\"; rm -rf $dir/config; ln -sf /etc/passwd $dir/config"
		git_ -c safe.directory='*' config -f "$dir/config" core.repositoryformatversion
		[ ! -e "$dir/hooks/pre-commit" ]
		[ -d "$dir" ]
	done
	inside -- 'cd parent/plain && echo y >y && git add y && git -c user.name=a -c user.email=b@c commit -q -m inside'
	[ "$(git_ -c safe.directory='*' -C parent/plain log -1 --format=%s)" = inside ]
}

@test "hooks paths, included files and commands that settings name are read-only, wherever they are named" {
	repository .
	mkdir -p hooks.d tools sub/hooks
	echo 'echo hello' | tee hooks.d/pre-commit tools/filter >/dev/null
	touch included conditional nested user.inc
	printf '[include]\n\tpath = nested\n' >included
	git_ config core.hooksPath hooks.d
	git_ config include.path ../included
	git_ config includeIf."gitdir:**".path "$W/project/conditional"
	git_ config filter.x.clean 'sh tools/filter %f'
	printf '[include]\n\tpath = %s/user.inc\n' "$W/project" >"$W/gitconfig"
	own . "$W/gitconfig"
	for name in hooks.d/pre-commit included conditional nested tools/filter user.inc; do
		run as env GIT_CONFIG_GLOBAL="$W/gitconfig" "$AK" run --workspace sh -c "echo evil >>$name"
		[ "$status" -ne 0 ] || { echo "$name can be written"; return 1; }
		run as env GIT_CONFIG_GLOBAL="$W/gitconfig" "$AK" run --workspace sh -c "echo evil >new; mv new $name"
		! grep -q evil "$name"
		rm -f new
	done
	git_ config core.hooksPath sub/hooks
	own .
	run ak run --workspace="$W/project/sub" touch hooks/post-checkout # the repository is around the workspace
	[ "$status" -ne 0 ]
	[ ! -e sub/hooks/post-checkout ]
	ak run --workspace touch tools/free # its neighbours are writable
}

@test "what is the caller's own is not touched: links that lead nowhere, our own directory, repositories as they are" {
	only_host
	git_ init -q .
	git_ config core.fsmonitor "$CANARY"
	git_ config core.hooksPath none/hooks
	ln -s /nonexistent/elsewhere none
	ln -s /nonexistent/file .mcp.json
	mkdir -p own/images/x
	own .
	git_ init -q own/images/x
	git_ -C own/images/x config core.fsmonitor "$CANARY"
	own .
	before=$(find . -type f -exec sha256sum {} + ; find . -type l -ls | awk '{ print $NF }')
	run as env AGENTKERNEL_HOME="$W/project/own" "$AK" run --workspace true
	says ""
	rm -f own/audit.jsonl own/etc-private
	[ "$(find . -type f -exec sha256sum {} + ; find . -type l -ls | awk '{ print $NF }')" = "$before" ]
	rm none
	ln -s later none # which could be created inside
	run inside -- true
	fails_with 125 "'none' in '$W/project' is a link to 'later', which is missing and could be made inside (remove the link, or add --unprotect none/hooks)"
}

# ---- git: repositories that a sandbox creates ----

# Each way creates a repository that would run the canary.
plant() {
	local canary=$CANARY
	case $1 in
	gitlink) echo "git init -q sub; git -C sub -c user.name=a -c user.email=b@c commit -q --allow-empty -m x
		git add sub 2>/dev/null; git -C sub config core.fsmonitor '$canary'" ;;
	hook) echo "git init -q sub; echo x >sub/f; for h in pre-commit post-commit post-checkout post-index-change reference-transaction; do cp /canary sub/.git/hooks/\$h; done" ;;
	hooks-link) echo "git init -q sub; echo x >sub/f; mkdir h; cp /canary h/post-index-change; rm -r sub/.git/hooks; ln -s ../../h sub/.git/hooks" ;;
	hooks-path) echo "git init -q sub; echo x >sub/f; mkdir h; cp /canary h/post-index-change; git -C sub config core.hooksPath ../h" ;;
	bare) echo "mkdir src; cd src; git init -q --bare .; git config core.bare false; git config core.worktree .; git config core.fsmonitor '$canary'" ;;
	in-bare) echo "git init -q --bare src; mkdir src/deep; git init -q src/deep/repo; git -C src/deep/repo config core.fsmonitor '$canary'" ;;
	include) echo "git init -q sub; printf '[core]\n\tfsmonitor = $canary\n' >inc; git -C sub config include.path ../../inc" ;;
	include-if) echo "git init -q sub; printf '[core]\n\tfsmonitor = $canary\n' >inc; git -C sub config includeIf.gitdir:**.path ../../inc" ;;
	quoted) echo "git init -q sub; printf '[core]\n\tfs\\\\\nmonitor = x\n[ core ]\n[CORE]FSMonitor=\"$canary\"\n' >>sub/.git/config" ;;
	comment) echo "git init -q sub; printf '; x\n# y [core]\n[core] ; z\nfsmonitor=$canary # c\n' >>sub/.git/config" ;;
	dotted) echo "git init -q sub; printf '[diff.x]\n\tcommand = $canary\n\ttextconv = $canary\n[core]\n\tattributesfile = .gitattributes\n' >>sub/.git/config; echo '* diff=x' >sub/.gitattributes; touch sub/f; git -C sub add f; echo y >sub/f" ;;
	filter) echo "git init -q sub; git -C sub config filter.x.clean '$canary'; git -C sub config filter.x.process '$canary'; echo '* filter=x' >sub/.gitattributes; echo x >sub/f" ;;
	worktree-config) echo "git init -q sub; git -C sub config extensions.worktreeConfig true; printf '[core]\n\tfsmonitor = $canary\n' >sub/.git/config.worktree" ;;
	git-file) echo "git init -q --separate-git-dir=\$PWD/data sub; git -C sub config core.fsmonitor '$canary'" ;;
	git-file-hidden) echo "git init -q .; git init -q sub; mv sub/.git .git/objects/data; echo 'gitdir: ../.git/objects/data' >sub/.git; git -C sub config core.fsmonitor '$canary'" ;;
	git-link) echo "git init -q sub; mv sub/.git data; ln -s ../data sub/.git; git -C sub config core.fsmonitor '$canary'" ;;
	commondir) echo "git init -q sub; mkdir common; mv sub/.git/objects sub/.git/refs sub/.git/config common; echo ../../common >sub/.git/commondir; git config -f common/config core.fsmonitor '$canary'" ;;
	alias) echo "git init -q sub; git -C sub config alias.st '!$canary'; git -C sub config core.pager '$canary'; git -C sub config core.editor '$canary'; git -C sub config core.sshCommand '$canary'" ;;
	submodule) echo "git init -q .; git init -q sub; git -C sub -c user.name=a -c user.email=b@c commit -q --allow-empty -m x
		git -c protocol.file.allow=always submodule --quiet add ./sub mod; git config -f .git/modules/mod/config core.fsmonitor '$canary'" ;;
	decoy) echo "git init -q sub; git -C sub config core.fsmonitor '$canary'; echo x >HEAD; mkdir objects refs" ;;
	dots) echo "git init -q .; git init -q e; mv e/.git .git/evil; git config -f .git/evil/config core.fsmonitor '$canary'; mkdir sub
		ln -s ../.git/objects sub/l; echo 'gitdir: l/../evil' >sub/.git" ;;
	link-dots) echo "git init -q .; git init -q e; mv e/.git .git/evil; git config -f .git/evil/config core.fsmonitor '$canary'; mkdir sub
		ln -s ../.git/objects sub/l; ln -s l/../evil sub/.git" ;;
	common-dots) echo "git init -q sub; git init -q e; mv e/.git sub/.git/x; git config -f sub/.git/x/config core.fsmonitor '$canary'; ln -s x/objects sub/.git/l
		rm -r sub/.git/objects sub/.git/refs; echo l/.. >sub/.git/commondir" ;;
	in-git) echo "git init -q .; git init -q .git/y; git -C .git/y config core.fsmonitor '$canary'; ln -s .git/y vendor" ;;
	before-section) echo "git init -q sub; { echo 'x = y'; cat sub/.git/config; printf '[core]\n\tfsmonitor = $canary\n'; } >c; mv c sub/.git/config" ;;
	config-link) echo "git init -q sub; mv sub/.git/config c; git config -f c core.fsmonitor '$canary'; ln -s ../../c sub/.git/config" ;;
	esac
}

@test "nothing that a sandbox leaves in a repository is run by git outside" {
	only_host
	local way text
	for way in gitlink hook hooks-link hooks-path bare in-bare include include-if quoted comment dotted filter worktree-config \
		git-file git-file-hidden git-link commondir alias submodule config-link decoy dots link-dots common-dots in-git before-section; do
		rm -rf "$W/project"/* "$W/project"/.g*
		[ "$way" != gitlink ] || repository .
		text=$(plant "$way")
		# first without protection, as a control: then the canary runs
		rm -rf "$W/control"
		cp -a "$W/project" "$W/control"
		(cd "$W/control" && ak run --mount "$W/control" --workdir "$W/control" --mount "$CANARY:/canary:ro" sh -c "$text" >/dev/null 2>&1 || true
			use_git)
		case $way in
		# an alias must be typed, and git itself refuses some of them
		alias | quoted | before-section | in-git) ;;
		*) [ -e "$CANARY.ran" ] || { echo "control: $way does not run the canary"; return 1; } ;;
		esac
		rm -f "$CANARY.ran"
		run ak run --workspace --mount "$CANARY:/canary:ro" sh -c "$text"
		[[ $output == *"git outside would run what the sandbox left in "* ]] || { echo "$way: not told: $output"; return 1; }
		untouched || { echo "after $way"; return 1; }
	done
}

@test "names that look like a repository keep nothing in them from being protected" {
	only_host
	repository .
	repository sub
	inside -- 'echo x >HEAD; mkdir objects refs; cd sub; echo x >HEAD; mkdir objects refs'
	own .
	for dir in .git sub/.git; do
		run inside -- "echo evil >>$dir/config; echo evil >$dir/hooks/pre-commit"
		! grep -q evil "$dir/config"
		[ ! -e "$dir/hooks/pre-commit" ]
	done
}

@test "a flood of names does not keep the last look from being taken" {
	only_host
	cat >"$W/flood.py" <<-'PY'
	import os
	names = [".claude", ".mcp.json", ".codex", ".gemini", ".vscode", ".idea", ".zed", ".cursor"]
	while True:
	    for name in names:
	        try:
	            os.mkdir(name)
	        except OSError:
	            pass
	PY
	run ak run --workspace --mount "$W/flood.py:/flood.py:ro" sh -c "git init -q sub; git -C sub config core.fsmonitor '$CANARY'; python3 /flood.py & python3 /flood.py"
	[ "$status" -eq 125 ]
	[ "$(ls -A)" = sub ]
	untouched
}

@test "however deep a repository lies, and the one that a worktree belongs to, what is left in it is found" {
	only_host
	repository .
	inside -- "top=\$PWD; for i in \$(seq 200); do mkdir d; cd d; done; git init -q .; git config core.fsmonitor '$CANARY'
		git -c user.name=a -c user.email=b@c commit -q --allow-empty -m x; sha=\$(git rev-parse HEAD); cd \$top
		git update-index --add --cacheinfo 160000,\$sha,\$(printf 'd/%.0s' \$(seq 199))d" 2>/dev/null
	git_ -c safe.directory='*' status --short >/dev/null 2>&1 || true
	[ ! -e "$CANARY.ran" ]
	rm -rf d
	git_ config extensions.worktreeConfig true
	git_ worktree add -q "$W/tree"
	(cd "$W/tree" && run inside -- "printf '[core]\n\tfsmonitor = $CANARY\n' | tee \$(git rev-parse --git-dir)/config.worktree >\$(git rev-parse --git-common-dir)/config.worktree"
		[[ $output == *"git outside would run what the sandbox left in 'worktrees/tree'"* ]] || { echo "$output"; exit 1; }
		git_ -c safe.directory='*' status >/dev/null)
	git_ -c safe.directory='*' status >/dev/null
	[ ! -e "$CANARY.ran" ]
}

@test "links in a protected directory lead to what is protected, too" {
	repository .
	mkdir scripts cfg .claude
	echo good | tee scripts/pre-commit >cfg/settings.json
	ln -s ../../scripts/pre-commit .git/hooks/pre-commit
	ln -s ../cfg/settings.json .claude/settings.json
	own .
	run inside -- 'echo evil >scripts/pre-commit; echo evil >cfg/settings.json; mv scripts x; mkdir scripts; echo evil >scripts/pre-commit; touch scripts/free cfg/free'
	[ "$(cat scripts/pre-commit cfg/settings.json)" = "good
good" ]
}

@test "on a full disk nothing that git would run stays either" {
	only_root
	mkdir small
	mount -t tmpfs -o size=4m tmpfs small
	mkdir small/project
	(cd small/project && AGENTKERNEL_HOME=$W/project/small/state "$AK" run -i host --workspace sh -c "git init -q sub; git -C sub config core.fsmonitor '$CANARY'
		cp /bin/true sub/.git/hooks/post-index-change; mkdir .claude; dd if=/dev/zero of=fill bs=64k 2>/dev/null; sleep 0.2" || true) >/dev/null 2>&1
	rm -f small/project/fill
	left=$(ls -A small/project)
	(cd small/project && use_git)
	umount small
	[ "$left" = sub ]
	[ ! -e "$CANARY.ran" ]
}

@test "a sandbox cannot keep its supervisor from ending it" {
	only_host
	for i in $(seq 60); do mkdir -p "many/$i/.git"; done
	own .
	began=$SECONDS
	run ak run --workspace --timeout 2s python3 -c '
import os
os.mkdir("a")
while True:
    os.rename("a", "hooks")
    os.rename("hooks", "a")'
	[ "$status" -eq 124 ]
	[ $((SECONDS - began)) -le 10 ]
	as "$AK" run --workspace sh -c 'trap "" TERM INT HUP; touch up; while true; do sleep 0.1; done' 3>&- 2>/dev/null &
	shell=$!
	until [ -e up ]; do sleep 0.02; done
	client=$(pgrep -P "$shell")
	kill "$client"
	sleep 0.2
	kill "$client" # a second time: ends at once
	began=$SECONDS
	wait "$shell" || true
	[ $((SECONDS - began)) -le 5 ]
}

@test "a .git that leads out of the workspace is taken away" {
	only_host
	repository "$W/other"
	inside -- "mkdir a b; echo 'gitdir: $W/other/.git' >a/.git; ln -s $W/other/.git b/.git" 2>/dev/null
	[ ! -e a/.git ] && [ ! -L b/.git ]
	inside -- "git init -q c; echo $W/other/.git/objects >c/.git/objects/info/alternates; git init -q d; echo $W/other/.git >d/.git/commondir" 2>/dev/null
	[ ! -e c/.git/objects/info/alternates ] && [ ! -e d/.git/commondir ]
}

@test "settings that were taken out are kept, and what is harmless stays where it was" {
	only_host
	run inside -- "git init -q .; git config user.name me; git config alias.x '!evil'; git remote add origin https://example.org/x.git; git config core.fsmonitor evil; git config remote.bad.url 'ext::sh -c evil'"
	[[ $output == *"git outside would run what the sandbox left in '.git': core.fsmonitor, alias.x, remote.bad.url (moved to $SHARED/home/state/quarantine/"* ]] || { echo "$output"; return 1; }
	kept=${output##*moved to }
	grep -q '!evil' "${kept%)*}"/*/config
	[ "$(git config -f .git/config user.name)" = me ]
	[ "$(git_ -c safe.directory='*' remote get-url origin)" = https://example.org/x.git ]
	run git_ -c safe.directory='*' config alias.x
	[ "$status" -eq 1 ]
	[ "$(stat -c %u:%g .git/config)" = "$(stat -c %u:%g .git)" ]
}

@test "git inside that may not change a repository's settings is explained" {
	only_host
	repository .
	run inside -- 'git remote add x https://example.org/x.git'
	[ "$status" -ne 0 ]
	[[ $output == *"agentkernel: git could not change '.git/config' in the sandbox, since git outside obeys it (add --unprotect .git/config to let it)"* ]] || { echo "$output"; return 1; }
	inside --unprotect .git/config -- 'git remote add x https://example.org/x.git'
	[ "$(git_ remote)" = x ]
	run inside -- 'git status; git log -1'
	[[ $output != *"could not change"* ]]
}

@test "settings that somebody outside replaced while a sandbox runs are still no way out" {
	only_host
	repository .
	git_ config alias.mine '!true' # existed before
	inside -- "touch up; until [ -e go ]; do sleep 0.02; done; git config core.fsmonitor '$CANARY' && touch done" 3>&- 2>"$W/err" &
	run=$!
	until [ -e up ]; do sleep 0.02; done
	git_ config user.name outside # by a rename, which drops the mount
	sleep 0.2
	touch go
	wait "$run" || true
	[ -e done ] # control: it could be written
	untouched
	[ "$(git config -f .git/config user.name)" = outside ]
	[ "$(git_ config alias.mine)" = '!true' ]
}

@test "a project's .gitmodules that a checkout outside replaces is left as it is" {
	only_host
	repository .
	printf '[submodule "a"]\n\tpath = a\n\turl = ./a\n' >.gitmodules
	own .
	inside -- 'touch up; until [ -e go ]; do sleep 0.02; done' 3>&- 2>"$W/err" &
	run=$!
	until [ -e up ]; do sleep 0.02; done
	printf '[submodule "b"]\n\tpath = b\n\turl = ./b\n' >new
	own new
	mv new .gitmodules
	sleep 0.2
	touch go
	wait "$run"
	[ ! -s "$W/err" ] || { cat "$W/err"; return 1; }
	grep -q 'path = b' .gitmodules
}

@test "an unknown owner, a mode, a link or a name cannot keep what is left from being looked at" {
	only_host
	inside -- "git init -q 'odd
name'; git -C 'odd
name' config core.fsmonitor '$CANARY'; git init -q deep; git -C deep config core.fsmonitor '$CANARY'; chmod 000 deep/.git/config deep/.git; chmod 000 deep" 2>/dev/null
	chmod -R u+rwx .
	untouched
}

# ---- named sandboxes ----

@test "in a sandbox that stays: exec tells, stop tells, a checkpoint looks" {
	only_host
	ak create "stay-${AS:-root}" --workspace
	ak start "stay-${AS:-root}"
	run ak exec -T "stay-${AS:-root}" sh -c 'mkdir .vscode; ls'
	[[ $output == *"agentkernel: '.vscode' was moved to "* ]]
	run ak exec -T "stay-${AS:-root}" true
	says ""
	ak exec -T "stay-${AS:-root}" sh -c "git init -q a; git -C a config core.fsmonitor '$CANARY'"
	ak checkpoint create "stay-${AS:-root}" >/dev/null
	untouched
	ak exec -T "stay-${AS:-root}" sh -c "git init -q b; git -C b config core.fsmonitor '$CANARY'"
	run ak stop "stay-${AS:-root}"
	[[ $output == *"git outside would run what the sandbox left in 'b/.git': core.fsmonitor"* ]]
	untouched
	ak remove "stay-${AS:-root}"
}

@test "--json has what was noticed" {
	run ak run --json --workspace sh -c 'mkdir .vscode; sleep 0.1'
	[[ $output == *'"notices":["'"'.vscode' was moved to "* ]]
}

@test "gc removes what has been in the quarantine for 30 days, and nothing younger" {
	run inside -- 'mkdir x; echo evil >x/y; mv x .vscode; sleep 0.1'
	kept=${output#*moved to }
	kept=$(dirname "$(dirname "${kept%%, since*}")")
	ak gc >/dev/null
	[ -d "$kept" ]
	as touch -d '31 days ago' "$kept"
	[[ $(ak gc --dry-run --json) == *'"quarantined":1'* ]]
	[ -d "$kept" ]
	[[ $(ak gc --json) == *'"quarantined":1'* ]]
	[ ! -e "$kept" ]
}

@test "callers over MCP are told in their notes" {
	only_host
	run as python3 "$TOP/tests/named/mcp.py" "$AK" -i host --workspace -- sandbox_run '{"command":["sh","-c","mkdir .vscode; sleep 0.1"]}' \
		sandbox_create '{"name":"told"}' sandbox_exec '{"name":"told","command":["mkdir",".claude"]}' \
		sandbox_exec '{"name":"told","command":["sh","-c","git init -q a; git -C a config core.fsmonitor x"]}' sandbox_stop '{"name":"told"}'
	[[ $output == *"'.vscode' was moved to "*"'.claude' was moved to "*"git outside would run what the sandbox left in 'a/.git': core.fsmonitor"* ]] || { echo "$output"; return 1; }
	ak remove -f told
}

@test "a directory that holds nothing but a .git file is looked at: one that leads outside goes" {
	only_host
	outside=$(mktemp -d "$SHARED/work/XXXXXX")
	own "$outside"
	git_ init -q --bare "$outside"
	run ak run --workspace sh -c "mkdir -p deep/leaf deep/plain && echo 'gitdir: $outside' >deep/leaf/.git && echo x >deep/plain/file"
	[ "$status" -eq 0 ]
	[ ! -e deep/leaf/.git ]
	[ "$(cat deep/plain/file)" = x ]
	[[ "$output" == *deep/leaf* ]]
}
