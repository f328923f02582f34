#!/usr/bin/env bats
# Protections that depend on options and circumstances. tests/escape has what hostile code tries in
# every kind of sandbox; here is what only one kind has. A denial inside is checked together with
# something outside that stays unchanged, or with a control: the same act works outside.
load helpers
bats_require_minimum_version 1.5.0

@test "capabilities are those of package managers, or none" {
	run probe -- caps
	says "ok effective=404fb permitted=404fb inheritable=0 bounding=404fb ambient=0 nnp=1"
	run probe -p restrictive -- caps
	says "ok effective=0 permitted=0 inheritable=0 bounding=0 ambient=0 nnp=1"
	run probe -u user -- caps
	says "ok effective=0 permitted=0 inheritable=0 bounding=0 ambient=0 nnp=1"
}

@test "root inside has no power outside" {
	run ak run sh -c 'id -u; awk "{print \$2}" /proc/self/uid_map'
	[ "${lines[0]}" = 0 ]
	if [ "${AS:-root}" = root ]; then
		[ "${lines[1]}" -ge $((0x70000000)) ]
	else
		[ "${lines[1]}" -eq "$(as id -u)" ]
	fi
}

@test "two sandboxes of root never share an id" {
	only_root
	# all id ranges but two are taken: the third sandbox must be refused. The lock file is the
	# machine's, so a folder of ours is mounted over it in a private namespace.
	ak run true
	mkdir "$W/run"
	unshare --mount --propagation private sh -c 'mount --bind "$1" /run/agentkernel && touch "$2" && exec sleep 60' \
		- "$W/run" "$W/mounted" 3>&- &
	holder=$!
	for _ in $(seq 100); do [ -e "$W/mounted" ] && break; sleep 0.05; done
	there=(nsenter --mount="/proc/$holder/ns/mnt" --wd="$W")
	"${there[@]}" python3 - "$W/ready" 3>&- <<-'PY' &
	import fcntl, os, struct, sys, time
	fd = os.open("/run/agentkernel/ids", os.O_RDWR | os.O_CREAT, 0o600)
	fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 2, 4092, 0)) # F_OFD_SETLK
	open(sys.argv[1], "w").close()
	time.sleep(60)
	PY
	locker=$!
	for _ in $(seq 100); do [ -e "$W/ready" ] && break; sleep 0.05; done
	for i in 1 2; do as "${there[@]}" "$AK" run sh -c 'awk "{print \$2}" /proc/self/uid_map; exec sleep 5' >"$W/map$i" 3>&- & done
	for _ in $(seq 100); do [ -s "$W/map1" ] && [ -s "$W/map2" ] && break; sleep 0.05; done
	run as "${there[@]}" "$AK" run true
	kill "$locker" "$holder"
	[ -s "$W/map1" ] && [ -s "$W/map2" ]
	[ "$(cat "$W/map1")" != "$(cat "$W/map2")" ]
	fails_with 125 "all 4094 ranges of ids are in use"
}

@test "our own process inside is not dumpable: its files in /proc are root's" {
	run as python3 - "$AK" <<-'PY'
	import os, subprocess, sys
	p = subprocess.Popen([sys.argv[1], "run", "sh", "-c", "echo up; exec sleep 20"],
	    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
	p.stdout.readline()
	def pids():
	    return [d for d in os.listdir("/proc") if d.isdigit()]
	def status(pid):
	    try:
	        return dict(l.split(":", 1) for l in open(f"/proc/{pid}/status"))
	    except OSError:
	        return {}
	inits = [i for i in pids() if status(i).get("PPid", "").strip() == str(p.pid)
	    and len(status(i).get("NSpid", "").split()) == 2]
	commands = [c for c in pids() if status(c).get("PPid", "").strip() in inits]
	print([os.stat(f"/proc/{i}/maps").st_uid for i in inits],
	    all(os.stat(f"/proc/{c}/maps").st_uid != 0 for c in commands), len(commands))
	p.terminate()
	PY
	says "[0] True 1" # control: the command itself is an ordinary process
}

@test "the environment is clean" {
	run as env SECRET=hunter2 LD_AUDIT= BASH_ENV=/x "$AK" run env
	[[ "$output" != *hunter2* && "$output" != *BASH_ENV* && "$output" != *LD_AUDIT* ]]
	[[ "$output" == *"PATH="* && "$output" == *"HOME="* ]]
}

@test "a set-id file cannot be made of a stream either" {
	touch "$W/out"
	[ "${AS:-root}" != user ] || chown 12345 "$W/out"
	as bash -c "$AK run --mount $PROBE:/probe:ro /probe fchmod 1 06755 >$W/out"
	[ "$(cat "$W/out")" = EPERM ]
	[ "$(stat -c %a "$W/out")" = 644 ]
}

@test "root's sandbox cannot write into its own stdin, nor read back its stdout" {
	only_root # an ordinary caller owns its pipes: SECURITY.md
	run as bash -c "echo x | $AK run --mount $PROBE:/probe:ro /probe reopen 0 1"
	says EACCES
	run as bash -c "$AK run --mount $PROBE:/probe:ro /probe reopen 1 0 | cat"
	says EACCES
	run bash -c "echo x | $PROBE reopen 0 1" # control
	says "a pipe"
	run as bash -c "printf 'echo 1\n$AK run true\necho 2\n' | sh" # and nothing is read ahead
	says "1
2"
}

@test "Landlock: a file passed for one direction cannot be opened for the other" {
	echo secret >"$W/out"
	[ "${AS:-root}" != user ] || chown 12345 "$W/out"
	as bash -c "$AK run --mount $PROBE:/probe:ro /probe reopen 1 0 >>$W/out"
	grep -qx EACCES "$W/out"
	as bash -c "$PROBE reopen 1 0 >>$W/out" # control
	grep -qx ok "$W/out"
}

@test "a directory is no stream" {
	run as bash -c "$AK run true <$W"
	fails_with 125 "stream 0 is a directory"
}

@test "counts that the whole account shares are bounded" {
	run ak run sh -c 'grep "pending signals" /proc/self/limits'
	[[ "$output" =~ signals[[:space:]]+1024[[:space:]]+1024 ]]
}

@test "a home or workspace that would show more than meant is refused" {
	mkdir "$W/home"
	[ "${AS:-root}" != user ] || chown 12345 "$W/home"
	for home in // /. /proc /dev /../..; do
		run as env HOME="$home" "$AK" run -p permissive true
		[ "$status" -eq 125 ]
		[[ "$output" == *"HOME '$home'"* ]]
	done
	cd "$W/home"
	run as env HOME="$W/home" "$AK" run --workspace true
	fails_with 125 "a workspace cannot hold your home directory"
	cd "$W"
	run as env HOME="$W/home" "$AK" run --workspace true
	fails_with 125 "a workspace cannot hold your home directory"
}

@test "a read-only mount is read-only and a writable one writes as its owner" {
	echo old >"$W/file"
	[ "${AS:-root}" != user ] || chown 12345:12345 "$W/file"
	run ak run --mount "$W:/w:ro" sh -c 'echo new >/w/file'
	[ "$status" -ne 0 ]
	[ "$(cat "$W/file")" = old ]
	ak run --mount "$W:/w" sh -c 'echo new >/w/file; touch /w/created'
	[ "$(cat "$W/file")" = new ]
	[ "$(stat -c %u:%g "$W/created")" = "$(stat -c %u:%g "$W")" ]
}

@test "root's sandbox writes as the owner of the directory, whoever that is" {
	only_root
	chown 4321:4321 "$W"
	ak run --mount "$W:/w" sh -c 'touch /w/a; mkdir /w/d; stat -c %u /w'
	[ "$(stat -c %u:%g "$W/a" "$W/d" | sort -u)" = 4321:4321 ]
}

@test "a workspace is at its own path, writable, and what the host runs later is protected" {
	mkdir -p "$W/.git/hooks" "$W/.vscode"
	echo '[core]' >"$W/.git/config"
	[ "${AS:-root}" != user ] || chown -R 12345:12345 "$W"
	run ak run --workspace sh -c 'pwd; touch made; echo evil >.git/hooks/pre-commit; echo evil >>.git/config; touch .vscode/tasks.json; mv .git/hooks .git/h2'
	[ "${lines[0]}" = "$W" ]
	[ -e "$W/made" ]
	[ ! -e "$W/.git/hooks/pre-commit" ]
	[ -d "$W/.git/hooks" ]
	[ "$(cat "$W/.git/config")" = '[core]' ]
	[ ! -e "$W/.vscode/tasks.json" ]
	# nor can the directory be moved aside and recreated
	run ak run --workspace sh -c 'mv .git .g2; mkdir -p .git/hooks; echo evil >.git/hooks/post-commit; rm -rf .git'
	[ ! -e "$W/.g2" ]
	[ ! -e "$W/.git/hooks/post-commit" ]
	[ "$(cat "$W/.git/config")" = '[core]' ]
}

@test "a .git that is a link is protected where it leads" {
	mkdir -p "$W/project" "$W/elsewhere/hooks"
	ln -s "$W/elsewhere" "$W/project/.git"
	[ "${AS:-root}" != user ] || chown -R -h 12345:12345 "$W"
	run ak run --workspace="$W/project" --mount "$W/elsewhere" sh -c 'touch .git/hooks/x 2>/dev/null || echo refused; touch fine && echo fine'
	says "refused
fine"
	[ -z "$(ls "$W/elsewhere/hooks")" ]
	run ak run --mount "$W/elsewhere" touch "$W/elsewhere/hooks/x" # control: only a workspace is protected
	[ "$status" -eq 0 ]
}

@test "a worktree's .git file is read-only" {
	echo 'gitdir: /elsewhere' >"$W/.git"
	[ "${AS:-root}" != user ] || chown 12345:12345 "$W/.git"
	run as env HOME=/nonexistent "$AK" run --workspace="$W" sh -c 'echo "gitdir: evil" >.git; rm -f .git; mv .git x'
	[ "$(cat "$W/.git")" = 'gitdir: /elsewhere' ]
}

@test "mounts, tmpfs and a read-only root go together in any order" {
	mkdir "$W/data"
	echo inside >"$W/data/file"
	[ "${AS:-root}" != user ] || chown -R 12345:12345 "$W/data"
	run ak run -p restrictive --mount "$W/data:/home/user/data" cat /home/user/data/file
	says inside
	run ak run --read-only --mount "$W/data:/tmp/x:ro" cat /tmp/x/file
	says inside
	run ak run --mount "$W/data:/a/b:ro" --tmpfs /a sh -c 'cat /a/b/file; touch /a/new && echo writable'
	says "inside
writable"
	run ak run --mount "$W/data:/a" --mount "$W:/a" true
	fails_with 125 "two things would be mounted at '/a'"
}

@test "a mount point is not made in a directory of the host" {
	mkdir "$W/ws" "$W/data"
	[ "${AS:-root}" != user ] || chown 12345:12345 "$W/ws" "$W/data"
	run ak run --workspace="$W/ws" --mount "$W/data:$W/ws/new/deep" true
	fails_with 125 "does not exist in"
	[ ! -e "$W/ws/new" ]
}

@test "the permissive profile shows home and environment, but not the keys" {
	mkdir "$W/home" "$W/home/.ssh" "$W/project"
	echo key >"$W/home/.ssh/id"
	echo machine >"$W/home/.netrc"
	echo plain >"$W/home/notes"
	[ "${AS:-root}" != user ] || chown -R 12345:12345 "$W/home" "$W/project"
	cd "$W/project"
	run as env HOME="$W/home" PLAIN=1 MY_TOKEN=t DATABASE=postgres://u:p@h/ "$AK" run -p permissive \
		sh -c 'cat ~/.ssh/id ~/.netrc; cat ~/notes; touch ~/x; touch here && echo wrote; env'
	[[ "$output" == *plain* && "$output" == *wrote* && "$output" == *PLAIN=1* ]]
	[[ "$output" != *machine* && "$output" != *MY_TOKEN* && "$output" != *postgres://* ]]
	[[ "$output" != *$'\n'key$'\n'* ]]
	[ ! -e "$W/home/x" ]
	[ -e "$W/project/here" ]
}

@test "the caller's terminal cannot be typed into, read or opened" {
	SHELL=/bin/bash script -qec "$(declare -f as ak probe); AK=$AK AS=$AS W=$W PROBE=$PROBE; probe -T -- tiocsti 2 2>/dev/null | cat; probe -T -- tiocsti-high 1; probe -T -- read-fd 2; probe -T -- reopen 2 0; probe -T -- read-fd 1" "$W/typescript" </dev/null >/dev/null
	run ! grep -q '^ok' "$W/typescript"
	[ "$(grep -c -E '^(E(PERM|BADF|ACCES|NOTTY)|a pipe)' "$W/typescript")" -eq 5 ]
	# control: outside, the same descriptors can be opened and read
	SHELL=/bin/bash script -qec "$PROBE reopen 2 0" "$W/control" </dev/null >/dev/null
	grep -q '^ok' "$W/control"
}
