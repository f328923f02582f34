#!/usr/bin/env bats
# What a sandbox can and cannot do in a directory that it may write to. attack.py tries everything
# on a list of names; the test checks outside that nothing came of it.
load helpers
bats_require_minimum_version 1.5.0

# Names that programs outside obey or run: each protected name, and what would be in it.
TOP_NAMES=(.claude .claude/settings.json .claude/skills/x/SKILL.md .mcp.json .codex
	.codex/config.toml .gemini .gemini/settings.json .opencode opencode.json opencode.jsonc .agents
	.cursor .cursor/mcp.json .vscode .vscode/tasks.json .idea .zed .devcontainer .devcontainer.json)
GIT_NAMES=(.git/ .git/hooks .git/hooks/pre-commit .git/config .git/config.worktree .git/commondir
	.git/modules/ .git/modules/x/config .git/info/attributes)

setup_file() {
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
	load_shared
	cp "$BATS_TEST_DIRNAME/attack.py" "$SHARED/attack.py"
	chmod 644 "$SHARED/attack.py"
}

own() {
	[ "${AS:-root}" != user ] || chown -R -h 12345:12345 "$@"
}

git_() {
	as git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main "$@"
}

# repository DIR: with a commit in it
repository() {
	git_ init -q "$1"
	echo first >"$1/file"
	echo attributes >"$1/.git/info/attributes"
	own "$1"
	git_ -C "$1" add file
	git_ -C "$1" commit -q -m first
}

# Everything below a directory: names, kinds, modes, owners, links and contents.
snapshot() {
	(cd "$1" && find . -printf '%p %y %m %U:%G %l\n' | sort
		find . -type f -print0 | sort -z | xargs -0 -r sha256sum)
}

# attack [run's options] -- NAME...: runs attack.py in a sandbox whose workspace is the current
# directory. Missing names are blocked: newnames.bats tests the default.
attack() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	ak run --workspace --protect-new strict "${options[@]}" --mount "$SHARED/attack.py:/attack.py:ro" \
		python3 /attack.py "$@"
}

# unharmed DIR COMMAND...: afterwards DIR is unchanged
unharmed() {
	local dir=$1 before
	shift
	before=$(snapshot "$dir")
	"$@" >"$SHARED/worked" 2>&1 || { cat "$SHARED/worked"; return 1; }
	diff <(echo "$before") <(snapshot "$dir") || { cat "$SHARED/worked"; return 1; }
}

@test "the attack works where nothing protects" {
	mkdir "$W/sub"
	own "$W"
	ak run --mount "$W" --workdir "$W" --mount "$SHARED/attack.py:/attack.py:ro" python3 /attack.py \
		.mcp.json sub/.mcp.json
	[ "$(cat .mcp.json)" = evil ]
	[ "$(cat sub/.mcp.json)" = evil ]
}

@test "names that do not exist cannot be made, and nothing is left behind" {
	unharmed . attack -- .git "${TOP_NAMES[@]}" "${GIT_NAMES[@]}"
}

@test "the same in any profile, for any user, and with a group of its own" {
	chmod g+s .
	unharmed . attack -p restrictive -- .git "${TOP_NAMES[@]}" "${GIT_NAMES[@]}"
	unharmed . attack -u nobody -- .git "${TOP_NAMES[@]}" "${GIT_NAMES[@]}"
	chmod 555 .
	if [ "${AS:-root}" = root ]; then
		unharmed . attack -- .git "${TOP_NAMES[@]}" "${GIT_NAMES[@]}"
	else # its owner could write inside, but we cannot outside
		run ak run --workspace --protect-new strict true
		fails_with 125 "keep the name '.git' free in '$W': Permission denied"
	fi
}

@test "names that exist can be neither changed, replaced nor moved aside" {
	repository .
	mkdir -p .claude/skills/x .codex .gemini .cursor .vscode .idea .zed
	git_ init -q --bare .git/modules/x
	for name in .claude/settings.json .claude/skills/x/SKILL.md .mcp.json .codex/config.toml \
		.gemini/settings.json opencode.json .cursor/mcp.json .vscode/tasks.json .devcontainer.json \
		.mcp.json .git/hooks/pre-commit; do
		echo good >"$name"
	done
	own .
	unharmed . attack -- "${TOP_NAMES[@]}" "${GIT_NAMES[@]}"
	git_ status >/dev/null
}

@test "a name that is a link cannot be replaced, nor what it leads to, nor what is on the way" {
	mkdir -p deep/conf far/away real
	echo good >deep/conf/envrc
	ln -s deep/conf/envrc .mcp.json
	ln -s "$W/far/away" .vscode
	ln -s real .claude
	own .
	unharmed . attack -- .mcp.json .vscode .vscode/tasks.json .claude .claude/settings.json real/settings.json \
		deep/ deep/conf/ deep/conf/envrc far/ far/away far/away/tasks.json
	ak run --workspace touch deep/fine deep/conf/fine # names that are not on the list are writable
	[ -e deep/conf/fine ]
}

@test "a .git that is a link to a place in the workspace is protected, hooks or none" {
	repository .
	rm -r .git/hooks
	mv .git data
	ln -s data .git
	own .
	unharmed . attack -- "${GIT_NAMES[@]}" data/ data/hooks data/hooks/pre-commit data/config
}

@test "a link that leads nowhere yet is refused, since what it leads to could be made" {
	ln -s nowhere .mcp.json
	own .
	run ak run --workspace true
	fails_with 125 "'.mcp.json' in '$W' is a link to 'nowhere', which is missing and could be made inside"
	[ "$(ls -A)" = .mcp.json ]
	ak run --workspace --unprotect .mcp.json true
	rm .mcp.json
	ln -s /nonexistent/outside .mcp.json # nobody inside can create that
	ak run --workspace true
}

# holder NAME [COMMAND]: a sandbox whose workspace is the current directory and that runs until the
# file "NAME.go" exists
holder() {
	ak run --workspace --protect-new strict --timeout 30s sh -c "${2:-true}; touch $1.up; until [ -e $1.go ]; do sleep 0.05; done
		mkdir .vscode && echo made; mkdir .git && echo made" >"$W/$1.out" 2>&1 3>&- &
	eval "$1_pid=$!"
	until_there "$1.up"
}

let_go() {
	touch "$1.go"
	eval "wait \"\$$1_pid\"" || true
	rm -f "$1.go" "$1.up"
}

until_there() {
	for _ in $(seq 200); do
		[ ! -e "$1" ] || return 0
		sleep 0.05
	done
	return 1
}

@test "git works inside and outside while names are kept free" {
	repository project
	cd project
	git_ config extensions.worktreeConfig true
	holder one 'git status --short && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m inside'
	[ "$(cat .git/commondir)" = . ] # a placeholder
	[ ! -s .git/config.worktree ]
	run git_ status --short
	says "?? one.up"
	git_ commit -q --allow-empty -m outside
	let_go one
	[ ! -e .git/commondir ]
	[ ! -e .git/config.worktree ]
	[ "$(git_ log --format=%s)" = "outside
inside
first" ]
}

@test "submodules are protected as the project is, and those in them" {
	repository "$W/inner"
	repository "$W/module"
	git_ -C "$W/module" -c protocol.file.allow=always submodule --quiet add "$W/inner" deep/inner
	git_ -C "$W/module" commit -q -m inner
	repository "$W/project"
	cd "$W/project"
	git_ -c protocol.file.allow=always submodule --quiet add "$W/module" "odd name"
	git_ -c protocol.file.allow=always submodule --quiet update --init --recursive
	git_ commit -q -m module
	names=(.gitmodules)
	for dir in "odd name" "odd name/deep/inner"; do
		names+=("$dir/" "$dir/.git" "$dir/.git/hooks" "$dir/.vscode" "$dir/.mcp.json")
	done
	for dir in .git/modules/"odd name" .git/modules/"odd name"/modules/deep/inner; do
		names+=("$dir/" "$dir/hooks/pre-commit" "$dir/config" "$dir/commondir")
	done
	unharmed . attack -- "${names[@]}"
	ak run --workspace touch "odd name/fine"
	[ -e "odd name/fine" ]
}

@test "linked worktrees below the workspace are protected as the project is" {
	repository .
	git_ config extensions.worktreeConfig true
	git_ worktree add -q -b one "trees/one tree"
	git_ worktree add -q trees/two
	own .
	# as git 2.48 writes it with worktree.useRelativePaths
	echo ../../../trees/two/.git >.git/worktrees/two/gitdir
	names=(trees/ .git/worktrees/ .git/worktrees/*/ .git/worktrees/{one-tree,two}/{commondir,gitdir,config.worktree})
	for dir in "trees/one tree" trees/two; do
		names+=("$dir/" "$dir/.git" "$dir/.vscode" "$dir/.mcp.json")
	done
	unharmed . attack -- "${names[@]}"
}

@test "a workspace that is a linked worktree: commits work, the repository's hooks are safe" {
	repository main
	git_ -C main config extensions.worktreeConfig true
	git_ -C main worktree add -q ../tree
	rm -r main/.git/hooks
	cd tree
	names=(.git .mcp.json)
	for name in hooks hooks/pre-commit config config.worktree commondir modules/x/config \
		info/attributes worktrees/tree/ worktrees/tree/commondir worktrees/tree/gitdir \
		worktrees/tree/config.worktree; do
		names+=("../main/.git/$name")
	done
	unharmed "$W" attack -- "${names[@]}"
	run ak run --workspace sh -c 'echo new >new && git add new && git -c user.name=a -c user.email=a@example.org commit -q -m inside && git status --short'
	says ""
	[ "$(git_ log -1 --format=%s)" = inside ]
	run ak run --workspace ls "$W/main" # only git's directory of the repository is visible
	[ "$status" -ne 0 ] || says ""
}

@test "a .git file shows no directory that does not name the workspace in return" {
	mkdir -p other/.git/worktrees/x other/.git/objects home/worktrees/x project
	echo ref >other/.git/HEAD
	echo secret >home/secret
	own .
	for git in "$W/other/.git" "$W/home"; do
		echo "gitdir: $git/worktrees/x" >project/.git
		echo "$W/elsewhere/.git" >"$git/worktrees/x/gitdir"
		run ak run --workspace=project ls "$git"
		[ "$status" -eq 2 ]
	done
	echo "$W/project/.git" >"$W/home/worktrees/x/gitdir" # refers back, but is no repository
	run ak run --workspace=project cat "$W/home/secret"
	[ "$status" -eq 1 ]
	[[ "$output" == *"No such file"* ]]
	echo "gitdir: $W/other/.git/worktrees/x" >project/.git
	echo "$W/project/.git" >other/.git/worktrees/x/gitdir
	run ak run --workspace=project cat "$W/other/.git/HEAD" # control
	says ref
}

@test "nothing is made outside of the workspace to keep a name free" {
	mkdir -p outside project
	ln -s ../outside project/.git
	ln -s ../outside project/linked
	own .
	cd project
	ak run --workspace --protect-new strict --protect linked/name --timeout 30s sh -c 'touch up; until [ -e go ]; do sleep 0.05; done' 3>&- &
	until_there up
	[ -z "$(ls -A ../outside)" ]
	[ -d .vscode ]
	touch go
	wait $!
}

@test "of two sandboxes at once the first end does not unprotect the other" {
	mkdir project
	own .
	cd project
	holder one
	holder two
	let_go one
	[ -d .vscode ]
	let_go two
	run ! grep made "$W/one.out" "$W/two.out"
	[ -z "$(ls -A)" ]
}

@test "what a crash leaves is harmless, and gone after the next run" {
	repository project
	cd project
	before=$(snapshot .)
	holder one
	kill -9 "$(pgrep -o -f "^$AK run .* touch one.up")"
	wait "$one_pid" || true
	rm one.up
	[ -d .vscode ]
	run git_ status --short
	says ""
	run ak run --workspace --protect-new strict touch .vscode/x
	[ "$status" -eq 1 ]
	[ "$(snapshot .)" = "$before" ]
}

@test "what the caller makes while a sandbox runs stays" {
	repository project
	cd project
	holder one
	rm -f .git/config.worktree
	echo '[a]' >.git/config.worktree
	rmdir .vscode
	mkdir .vscode
	echo mine >.vscode/settings.json
	let_go one
	[ "$(cat .vscode/settings.json)" = mine ]
	[ "$(cat .git/config.worktree)" = '[a]' ]
}

@test "a run that cannot start leaves nothing behind" {
	run ak run --workspace --mount "$W/none:/none" true
	fails_with 125 "does not exist"
	run -127 ak run --workspace no-such-program
	[ -z "$(ls -A)" ]
}

@test "what is protected in addition, and what is not any more" {
	mkdir deploy .vscode
	echo good >deploy/key
	own .
	unharmed . attack --protect deploy --protect absent --protect some/where/deep -- deploy deploy/key absent \
		absent/x some some/where some/where/deep some/where/deep/x
	ak run --workspace --unprotect .vscode --unprotect .mcp.json sh -c 'touch .vscode/x; echo y >.mcp.json'
	[ -e .vscode/x ]
	[ "$(cat .mcp.json)" = y ]
	for bad in /etc ../up . '' '~/x'; do
		run ak run --workspace --protect "$bad" true
		[ "$status" -eq 125 ]
		[[ "$output" == *"--protect: '$bad'"* ]]
	done
}

@test "masks: patterns, depths, links and odd names" {
	mkdir -p a/b/c .dot/d 'sp ace' .git/secret
	for name in .env .env.local env a/.env a/b/c/secret secret .dot/d/secret 'sp ace/b[1]' a/b/keep .git/secret/x; do
		echo value >"$name"
	done
	mkdir a/b/secret.d a/b/c/dir
	echo value >a/b/secret.d/x
	echo value >a/b/c/dir/x
	ln -s a/b/keep linked
	own .
	cat >"$W/look" <<-'SH'
	for n in .env .env.local env a/.env secret a/b/c/secret .dot/d/secret "sp ace/b[1]" a/b/keep .git/secret/x a/b/secret.d/x a/b/c/dir/x; do
		[ -s "$n" ] && printf '%s ' "$n"
	done
	echo
	SH
	own look
	run ak run --workspace --mask '.env*' sh look
	says "env a/.env secret a/b/c/secret .dot/d/secret sp ace/b[1] a/b/keep .git/secret/x a/b/secret.d/x a/b/c/dir/x "
	run ak run --workspace --mask '**/secret' --mask 'sp ace/b\[1]' sh look
	says ".env .env.local env a/.env a/b/keep .git/secret/x a/b/secret.d/x a/b/c/dir/x "
	run ak run --workspace --mask '**/.env*' --mask linked sh look
	says "env secret a/b/c/secret .dot/d/secret sp ace/b[1] .git/secret/x a/b/secret.d/x a/b/c/dir/x "
	run ak run --workspace --mask 'a/**' sh look
	says ".env .env.local env secret .dot/d/secret sp ace/b[1] .git/secret/x "
	run ak run --workspace --mask '*nv' sh look # as in a shell, '*' does not match a leading dot
	says ".env .env.local a/.env secret a/b/c/secret .dot/d/secret sp ace/b[1] a/b/keep .git/secret/x a/b/secret.d/x a/b/c/dir/x "
	run ak run --workspace --mask 'a/*/*.d' --mask 'a/b/c/dir' sh look
	says ".env .env.local env a/.env secret a/b/c/secret .dot/d/secret sp ace/b[1] a/b/keep .git/secret/x "
	run ak run --workspace --mask '.env' sh -c 'mv .env x; rm .env; echo new >.env; ln .env hard; cat hard'
	[ "$(cat .env)" = value ]
	[ ! -e hard ]
}

@test "a mask that would not reach everything is refused" {
	deep=$W
	for i in $(seq 34); do deep+=/d; done
	mkdir -p "$deep"
	own d
	run ak run --workspace --mask '**/secret' true
	fails_with 125 "lies deeper than 32 directories"
	mkdir many
	(cd many && seq -f 'key%g' 513 | xargs touch)
	own many
	run ak run --workspace --mask 'many/key*' true
	fails_with 125 "--mask 'many/key*': masks match more than 512 names"
}

@test "a workspace that is no directory of a project is refused in words" {
	mkdir dir home
	touch file
	ln -s dir link
	mkfifo fifo
	own .
	run ak run --workspace=link true
	fails_with 125 "workspace (--workspace): '$W/link' is a symbolic link (name the place that it leads to)"
	run ak run --workspace=file true
	fails_with 125 "'$W/file' is not a directory (--mount shows a single file)"
	run ak run --workspace=fifo true
	fails_with 125 "'$W/fifo' is not a directory"
	run ak run --workspace=none true
	fails_with 125 "'$W/none' does not exist"
	run ak run --workspace=/ true
	fails_with 125 "'/' cannot be a workspace: nothing can be mounted over '/'"
	for dir in /proc /dev /sys/fs; do
		run ak run --workspace=$dir true
		fails_with 125 "'$dir' cannot be a workspace"
	done
	for home in "$W/home" "$W/home/"; do
		run as env HOME="$home" "$AK" run --workspace="$W/home" true
		fails_with 125 "a workspace cannot hold your home directory and the keys in it"
	done
	for act in "create ws" "run --keep"; do
		# shellcheck disable=SC2086 # two words
		run ak $act --workspace=link true
		[ "$status" -eq 125 ]
	done
}

@test "one's home is refused as a workspace by whatever name" {
	mkdir -p real/me
	ln -s real home
	own .
	run as env HOME="$W/home/me" "$AK" run --workspace="$W/real/me" true
	fails_with 125 "a workspace cannot hold your home directory and the keys in it"
	run as env HOME="$W/home/me" "$AK" run --workspace="$W/real" true
	fails_with 125 "a workspace cannot hold your home directory and the keys in it"
}

@test "files belong to whom the workspace belongs to, outside as inside" {
	umask 022
	mkdir project
	owner=$(as id -u):$(as id -g)
	[ "${AS:-root}" != root ] || owner=4321:4322
	chown "$owner" project
	chmod 750 project
	cd project
	ak run --workspace="$W/project" sh -c 'mkdir d; echo x >d/f; chmod 600 d/f; touch e; ln -s e l; id -u; stat -c %u:%g d' >"$W/out"
	[ "$(cat "$W/out")" = "0
0:0" ]
	[ "$(stat -c %u:%g d d/f e l | sort -u)" = "$owner" ]
	[ "$(stat -c %a d/f)" = 600 ]
	[ "$(stat -c %a .)" = 750 ]
	ak run -p restrictive --workspace="$W/project" touch r
	[ "$(stat -c %u:%g r)" = "$owner" ]
}

@test "--verbose says what is masked and which variables stay out" {
	mkdir -p home/.ssh project
	own .
	cd project
	run as env HOME="$W/home" MY_TOKEN=1 PLAIN=1 "$AK" run --verbose -p permissive --mask .env true
	[ "$status" -eq 0 ]
	[[ "$output" == *"agentkernel: masked: ~/.ssh, .env (--unmask shows one)"* ]]
	[[ "$output" == *"agentkernel: variables kept out: "*MY_TOKEN* ]]
	[[ "$output" != *PLAIN* ]]
	run as env HOME="$W/home" MY_TOKEN=1 "$AK" run --verbose -p permissive --unmask .ssh -e MY_TOKEN true
	[[ "$output" != *masked* && "$output" != *MY_TOKEN* ]]
	run ak run --verbose true
	says ""
}

@test "--unmask shows what it names of the home, and nothing else" {
	mkdir -p home/.ssh home/.aws project
	echo key >home/.ssh/id
	echo key >home/.aws/credentials
	echo npm >home/.npmrc
	own .
	cd project
	run as env HOME="$W/home" "$AK" run --home --unmask .npmrc --unmask .aws sh -c 'cat ~/.npmrc ~/.aws/credentials ~/.ssh/id'
	[ "$status" -ne 0 ]
	[ "${lines[0]}" = npm ]
	[ "${lines[1]}" = key ]
	[[ "${lines[2]}" == *".ssh/id: No such file"* ]]
}

# ---- --clone ----

# A repository with a commit, and uncommitted changes.
dirty_repository() {
	repository "$1"
	mkdir "$1/d"
	echo x >"$1/d/x"
	echo bytes >"$1/b"
	own "$1"
	git_ -C "$1" add -A
	git_ -C "$1" commit -q -m second
	echo changed >>"$1/file"
	echo untracked >"$1/untracked"
	own "$1"
}

COMMIT='git -c user.name=a -c user.email=a@example.org commit -q'

@test "--clone: the repository is not touched, and its changes are not in the clone" {
	dirty_repository project
	cd project
	unharmed . ak run --workspace --clone sh -c "cat file; ls; echo x >>file; rm -r d; $COMMIT -a -m inside
		git push -q origin HEAD:refs/heads/evil; echo evil >.git/hooks/pre-commit
		touch /var/lib/agentkernel/origin/x /var/lib/agentkernel/origin/.git/hooks/x; echo done"
	[[ "$(cat "$SHARED/worked")" == "first
b
d
file
"*done ]]
	run ak run -p restrictive --workspace --clone sh -c "pwd; echo new >new; git add new; $COMMIT -m inside; git log --format=%s"
	says "$W/project
inside
second
first"
}

@test "--clone: what came of it is a patch that applies, and commits that can be fetched" {
	dirty_repository project
	cd project
	ak create clone --workspace --clone
	ak start clone
	ak exec -T clone sh -c "echo more >>file; rm b; git mv d/x d/y; head -c 100 /dev/urandom >bin; chmod +x file
		$COMMIT -a -m inside; echo new >new; ln -s file link; mkdir 'odd name'; echo z >'odd name/z'"
	before=$(snapshot .)
	ak diff --git clone >"$W/patch"
	[ "$(snapshot .)" = "$before" ]
	git_ fetch -q --upload-pack "$AK exec -T clone git-upload-pack" "$W/project" main
	[ "$(git_ log -1 --format=%s FETCH_HEAD)" = inside ]
	git_ worktree add -q -f ../fresh HEAD
	cd ../fresh
	git_ apply "$W/patch"
	git_ add -A
	[ "$(git_ status --short)" = 'D  b
A  bin
R  d/x -> d/y
M  file
A  link
A  new
A  "odd name/z"' ]
	[ -x file ]
	ak stop clone
	ak diff --git clone | cmp - "$W/patch" # the sandbox is started for that, and stopped again
	[ "$(ak info clone | sed -n 's/^state *//p')" = stopped ]
	ak start clone
	run ak exec clone cat new # and it is still the same clone
	says new
	ak remove -f clone
}

@test "--clone: a linked worktree, an odd name" {
	repository "it's (one)"
	cd "it's (one)"
	git_ worktree add -q ../tree
	run ak run --workspace --clone sh -c 'pwd; git log --format=%s'
	says "$W/it's (one)
first"
	cd ../tree
	unharmed "$W" ak run --workspace --clone sh -c "touch x '$W/it'\\''s (one)/.git/x'; git add x; $COMMIT -m inside"
}

@test "--clone needs a repository with a commit, and git" {
	mkdir -p empty/sub
	own .
	run ak run --workspace=empty --clone true
	fails_with 125 "workspace (--workspace): '$W/empty' is not the root of a git repository, which --clone needs"
	git_ init -q empty
	run ak run --workspace=empty --clone true
	[ "$status" -eq 125 ]
	[ "${lines[0]}" = "agentkernel: --clone needs a commit to begin with" ]
	run ak run --workspace=empty/sub --clone true
	fails_with 125 "'$W/empty/sub' is not the root of a git repository"
	run ak run --clone true
	fails_with 125 "--clone: there is no workspace to clone (add --workspace)"
	ak create plain
	run ak diff --git plain
	fails_with 125 "sandbox 'plain' was not made with --clone: there is no repository to compare with"
	run ak diff --git --json plain
	fails_with 125 "--git and --json exclude each other"
	ak remove plain
}

@test "a directory that a sandbox gave our mark does not open the names in it" {
	mkdir project && cd project && git init -q .
	as_owner() { [ "${AS:-root}" != user ] || chown -R 12345:12345 "$W/project"; }
	as_owner
	ak run --workspace sh -c 'chmod 1555 . .git || true'
	ak run --workspace sh -c 'chmod 755 . .git; mkdir -p .vscode && echo x >.vscode/tasks.json; echo x >.mcp.json; mkdir -p .git/hooks; echo x >.git/hooks/post-checkout' || true
	chmod 755 . .git
	[ ! -e .vscode/tasks.json ] && [ ! -s .mcp.json ] && [ ! -e .git/hooks/post-checkout ]
}

@test "whoever holds on to what keeps a name free makes nobody wait for ever" {
	mkdir -m 1555 .mcp.json # as left by a killed sandbox
	own .mcp.json
	flock -x -o .mcp.json sleep 30 3>&- &
	holder=$!
	sleep 0.2
	started=$SECONDS
	run ak run --workspace --protect-new strict true
	kill "$holder"
	fails_with 125 "busy"
	[ $((SECONDS - started)) -lt 10 ]
	run -0 ak run --workspace --protect-new strict true
}

@test "a directory that nobody inside could write to needs no care, one whose owner could does" {
	only_user
	mkdir project
	cd project
	run -0 ak run --workspace --protect-new strict true # the tests' root owns it
	chown 12345 .
	chmod 555 .
	run ak run --workspace --protect-new strict true
	fails_with 125 "ermission denied"
	chmod 755 .
	run -0 ak run --workspace --protect-new strict true
}

# swapping DIR A B: exchanges two names as fast as possible, an even number of times, until
# swapped()
swapping() {
	rm -f "$SHARED/stop"
	as python3 -c '
import ctypes, os, sys
os.chdir(sys.argv[1])
c = ctypes.CDLL(None)
while not os.path.exists(sys.argv[4]):
    for i in range(100):
        c.renameat2(-100, sys.argv[2].encode(), -100, sys.argv[3].encode(), 2)
' "$@" "$SHARED/stop" 3>&- &
	swapper=$!
}

swapped() {
	touch "$SHARED/stop"
	wait "$swapper"
}

# shown_while_swapped WORD...: "good" or a refusal, but never the link's target
shown_while_swapped() {
	local seen
	for _ in $(seq 120); do
		seen=$(ak run "$@" 2>&1) || true
		[[ $seen != *secret* ]] || { swapped; echo "shown: $seen"; return 1; }
		[ "$seen" != good ] || good=$((good + 1))
	done
}

@test "a directory that is exchanged for a link while a sandbox starts is never the link's target" {
	mkdir -p ours/deep/project secret
	echo good >ours/deep/project/mark
	mkdir -p secret/project
	echo secret | tee secret/project/mark >secret/mark
	ln -s ../secret ours/link      # in place of a parent directory
	ln -s ../../secret ours/deep/link # in place of the directory itself
	own .
	good=0
	swapping ours deep link
	shown_while_swapped --workspace="$W/ours/deep/project" cat mark
	shown_while_swapped --mount "$W/ours/deep/project:/data" cat /data/mark
	swapped
	swapping ours/deep project link
	shown_while_swapped --workspace="$W/ours/deep/project" cat mark
	shown_while_swapped --mount "$W/ours/deep/project:/data" cat /data/mark
	swapped
	[ "$good" -gt 20 ] # it did start sometimes
}

@test "links that only root can have made are followed, others are not" {
	mkdir real
	echo good >real/file
	ln -s real link
	own .
	run ak run --mount "$W/link/file:/f" cat /f
	fails_with 125 "'$W/link/file' leads through the symbolic link '$W/link' (name the place that it leads to)"
	[ -L /var/run ] || skip "/var/run is no link here"
	ak run --mount /var/run:/r:ro test -d /r
}
