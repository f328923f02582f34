#!/usr/bin/env bats
# What hostile code tries, and the wall that stops it. A denial inside is checked together with
# something outside that stays as it was, or with a control: the same act, outside, works.
load helpers
bats_require_minimum_version 1.5.0

@test "the host's files have no name inside" {
	echo canary >"$W/canary"
	chmod 644 "$W/canary"
	run probe -- read "$W/canary"
	says ENOENT
	run as "$PROBE" read "$W/canary" # control
	says ok
	for path in /etc/shadow /root/.bashrc /home /var/log/dpkg.log /sys/kernel "/proc/1/root$W/canary" \
		"/proc/self/root/../../$W/canary" "/proc/self/cwd/../../..$W/canary"; do
		run probe -- read "$path"
		[[ "$output" == ENOENT || "$output" == EACCES || "$output" == *directory* ]]
	done
}

@test "this machine's programs cannot be changed" {
	only_host
	for path in /usr/bin/env /usr/new /bin/sh /etc/ld.so.cache; do
		run probe -- write "$path"
		[[ "$output" == EROFS || "$output" == EACCES ]]
	done
}

@test "a program that anyone may write outside cannot be written inside" {
	only_host
	file=$(mktemp /usr/local/share/agentkernel-test.XXXXXX) || skip "/usr cannot be written by the test"
	chmod 666 "$file"
	inside=$(probe -- write "$file")
	outside=$(as "$PROBE" write "$file") # control
	rm -f "$file"
	[ "$inside" = EROFS ]
	[ "$outside" = ok ]
}

@test "a chroot of one's own leads nowhere" {
	echo canary >"$W/canary"
	run probe -- chroot-walk "$W/canary"
	says ENOENT
	run probe -p restrictive -- chroot-walk "$W/canary"
	says EPERM
}

@test "nothing can be mounted, unmounted or remounted" {
	run probe -- mount /tmp
	says EPERM
	run probe -- remount /usr
	says EPERM
	for call in pivot_root move_mount open_tree fsopen mount_setattr umount; do
		run probe -- syscall "$call"
		says EPERM
	done
}

@test "no new namespaces, by any call" {
	for flags in 0x10000000 0x20000 0x20000000 0x40000000 0x8000000 0x4000000 0x2000000; do
		run probe -- unshare "$flags"
		says EPERM
		run probe -- clone "$flags"
		says EPERM
		run probe -- clone3 "$flags"
		says ENOSYS
	done
	run probe -- setns /proc/self/ns/net
	says EPERM
	run as "$PROBE" unshare 0x10000000 # control
	says ok
}

@test "dangerous system calls do not exist" {
	for call in bpf perf_event_open userfaultfd io_uring_setup keyctl add_key open_by_handle_at \
		fanotify_init init_module finit_module delete_module kexec_load reboot swapon acct \
		syslog settimeofday clock_settime sethostname quotactl personality kcmp pidfd_getfd \
		memfd_secret; do
		run probe -- syscall "$call"
		says EPERM
	done
	run as "$PROBE" syscall io_uring_setup # control
	says ok
	run as "$PROBE" syscall userfaultfd
	says ok
}

@test "other architectures' entries are closed" {
	[ "$(uname -m)" = x86_64 ] || skip "the 32-bit and x32 entries are x86's"
	run "$PROBE" int80 # control
	says ok
	run probe -- int80
	[ "$status" -eq 159 ] # SIGSYS
	run probe -- x32
	says ENOSYS
}

@test "only ordinary sockets can be made" {
	run probe -- socket 1 1 0
	says ok
	run probe -- socket 2 1 0
	says ok
	run probe -- socket 10 2 0
	says ok
	run probe -- socket 16 3 0
	says ok
	for family in 3 15 17 21 29 31 38 40 44; do # ax25 key packet rds can bluetooth alg vsock xdp
		run probe -- socket "$family" 2 0
		says EAFNOSUPPORT
	done
	run probe -- socket 16 3 12 # nf_tables
	says EPROTONOSUPPORT
	run probe -- socket 2 3 1 # raw
	says EPERM
	run probe -- socket 2 1 132 # sctp
	says EPROTONOSUPPORT
	run "$PROBE" socket 40 1 0 # control
	says ok
}

@test "without a network there is none" {
	python3 -c 'import socket,time; s=socket.socket(); s.bind(("127.0.0.1",0)); s.listen(); print(s.getsockname()[1],flush=True); s.settimeout(20)
try:
    s.accept(); open("'"$W"'/hit","w").close()
except OSError: pass' >"$W/port" &
	server=$!
	for _ in $(seq 100); do [ -s "$W/port" ] && break; sleep 0.05; done
	port=$(cat "$W/port")
	run probe -- connect 127.0.0.1 "$port"
	says ECONNREFUSED
	run probe --no-network -- connect 127.0.0.1 "$port"
	says ECONNREFUSED
	run probe --no-network -- connect 192.0.2.1 80
	says ENETUNREACH
	run probe -p restrictive -- connect 192.0.2.1 80
	says ENETUNREACH
	[ ! -e "$W/hit" ]
	run "$PROBE" connect 127.0.0.1 "$port" # control
	says ok
	wait "$server"
	[ -e "$W/hit" ]
}

@test "abstract and path sockets of the host are out of reach" {
	python3 -c 'import socket,time
s=socket.socket(socket.AF_UNIX); s.bind("\0agentkernel-test-'$$'"); s.listen()
t=socket.socket(socket.AF_UNIX); t.bind("'"$W"'/sock"); t.listen(); open("'"$W"'/ready","w").close(); time.sleep(15)' &
	server=$!
	for _ in $(seq 100); do [ -e "$W/ready" ] && break; sleep 0.05; done
	run probe -- unix "@agentkernel-test-$$"
	says ECONNREFUSED
	run "$PROBE" unix "@agentkernel-test-$$" # control
	says ok
	run probe -- unix "$W/sock"
	says ENOENT
	kill "$server"
}

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
	# all ranges but two are taken: the third sandbox has to be refused
	python3 - "$W/ready" <<-'PY' &
	import fcntl, os, struct, sys, time
	fd = os.open("/run/agentkernel/ids", os.O_RDWR | os.O_CREAT, 0o600)
	fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 2, 4092, 0)) # F_OFD_SETLK
	open(sys.argv[1], "w").close()
	time.sleep(4)
	PY
	locker=$!
	for _ in $(seq 100); do [ -e "$W/ready" ] && break; sleep 0.05; done
	for i in 1 2; do ak run sh -c 'awk "{print \$2}" /proc/self/uid_map; exec sleep 2' >"$W/map$i" & done
	for _ in $(seq 100); do [ -s "$W/map1" ] && [ -s "$W/map2" ] && break; sleep 0.05; done
	[ "$(cat "$W/map1")" != "$(cat "$W/map2")" ]
	run ak run true
	kill "$locker"
	fails_with 125 "all 4094 ranges of ids are in use"
}

@test "only three descriptors come in, whatever the caller has open" {
	exec 7</etc/passwd 9>"$W/nine"
	run probe -- fds
	says "ok 0 1 2"
	exec 7<&- 9>&-
}

@test "our own process inside can be neither traced, read nor signalled" {
	run probe -- ptrace 1
	says EPERM
	run probe -- read /proc/1/environ
	says EACCES
	run probe -- read /proc/1/exe
	says EACCES
	run probe -- write /proc/1/mem
	[[ "$output" == EROFS || "$output" == EACCES ]]
	for signal in 1 2 9 15 19; do
		run probe -- kill 1 "$signal"
		[ "$status" -eq 0 ] # and we are still here
	done
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
	says "[0] True 1" # the command itself is an ordinary process: the control
}

@test "debuggers work on the sandbox's own processes, unless restrictive" {
	run probe -- trace-child
	says ok
	run probe -p restrictive -- trace-child
	says EPERM
}

@test "the program itself is not changed by what runs in it" {
	before=$(sha256sum "$AK")
	run probe -- write /proc/1/exe
	[[ "$output" == EACCES || "$output" == EROFS ]]
	run ak run sh -c 'echo x >/proc/self/exe'
	[ "$status" -ne 0 ]
	[ "$(sha256sum "$AK")" = "$before" ]
}

@test "the kernel's knobs are read-only and its secrets masked" {
	for path in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sysrq-trigger \
		/proc/sys/vm/overcommit_memory /proc/self/oom_score_adj /proc/self/uid_map; do
		run probe -- write "$path"
		[[ "$output" == EROFS || "$output" == EACCES || "$output" == ENOENT ]]
	done
	run ak run sh -c 'cat /proc/keys /proc/kallsyms /proc/kcore /proc/timer_list 2>/dev/null | wc -c'
	says 0
	run ak run ls /sys
	[ "$status" -ne 0 ]
}

@test "other processes cannot be seen" {
	run ak run sh -c 'ls -d /proc/[0-9]* | wc -l'
	[ "$output" -le 4 ]
}

@test "devices are the harmless six" {
	run ak run sh -c 'ls /dev | sort | tr "\n" " "'
	says "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero "
	run probe -- mknod /tmp/disk
	says EPERM
	run probe -- read /dev/tty
	says ENXIO
}

@test "shared memory and System V IPC are private" {
	id=$(ipcmk -M 4096 | grep -o '[0-9]*$')
	touch "/dev/shm/agentkernel-test-$$"
	[ "$(ipcs -m | grep -c "^0x")" -ge 1 ] # control
	run ak run sh -c 'ls /dev/shm | wc -l; tail -n +2 /proc/sysvipc/shm | wc -l; echo works'
	rm "/dev/shm/agentkernel-test-$$"
	ipcrm -m "$id"
	says "0
0
works"
}

@test "the environment is clean" {
	run as env SECRET=hunter2 LD_AUDIT= BASH_ENV=/x "$AK" run env
	[[ "$output" != *hunter2* && "$output" != *BASH_ENV* && "$output" != *LD_AUDIT* ]]
	[[ "$output" == *"PATH="* && "$output" == *"HOME="* ]]
}

@test "ids cannot be widened" {
	run probe -p restrictive -- setuid 0
	[[ "$output" == EPERM || "$output" == EINVAL ]]
	run probe -- setuid 70000
	says EINVAL
	run ak run sh -c 'for f in /usr/bin/su /usr/bin/passwd /usr/bin/sudo; do [ -u $f ] && $f --help; done; id -u; grep NoNewPrivs /proc/self/status'
	[[ "$output" == *"NoNewPrivs:	1"* ]]
}

@test "a set-id file cannot be left in a directory of the host" {
	touch "$W/tool"
	[ "${AS:-root}" != user ] || chown 12345 "$W/tool"
	for mode in 04755 02755; do
		run probe --mount "$W:/w" -- chmod /w/tool "$mode"
		says EPERM
		run probe --mount "$W:/w" -- create-mode "/w/new-$mode" "$mode"
		says EPERM
	done
	[ "$(stat -c %a "$W/tool")" = 644 ]
	run probe --mount "$W:/w" -- chmod /w/tool 0755
	says ok
}

@test "a set-id file cannot be made of a stream either" {
	touch "$W/out"
	[ "${AS:-root}" != user ] || chown 12345 "$W/out"
	as bash -c "$AK run --mount $PROBE:/probe:ro /probe fchmod 1 06755 >$W/out"
	[ "$(cat "$W/out")" = EPERM ]
	[ "$(stat -c %a "$W/out")" = 644 ]
}

@test "a file capability cannot be left in a directory of the host" {
	touch "$W/tool"
	[ "${AS:-root}" != user ] || chown 12345 "$W/tool"
	run probe --mount "$W:/w" -- setfcap /w/tool
	says EPERM
	if [ "${AS:-root}" = root ]; then
		run "$PROBE" setfcap "$W/tool" # control
		says ok
	fi
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

@test "Landlock: signals do not cross to our own process" {
	ak doctor | grep -q 'landlock *ok' || skip "Landlock has no scopes here (before ABI 6)"
	run probe -- kill 1 15
	says EPERM
	run ak run sh -c 'sleep 5 & kill $! && echo own processes can be signalled'
	says "own processes can be signalled"
}

@test "a directory is no stream" {
	run as bash -c "$AK run true <$W"
	fails_with 125 "stream 0 is a directory"
}

@test "pid 1 cannot be limited or slowed down by those inside" {
	run probe -- limit-init
	says EPERM
	run probe -- idle-init
	says EPERM
}

@test "counts that the whole account shares are bounded" {
	run probe -- inotify
	says "EMFILE after 64"
	run probe -- syscall io_setup
	says ENOSYS
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

@test "limits cannot be raised from inside" {
	for resource in 4 7 6; do # core nofile nproc
		run probe -- rlimit "$resource"
		says EPERM
	done
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

@test "files of other owners in a mounted directory stay out of reach" {
	only_root
	echo secret >"$W/roots"
	chmod 600 "$W/roots"
	chown 4321 "$W"
	run ak run --mount "$W:/w" cat /w/roots
	[ "$status" -ne 0 ]
	[[ "$output" != *secret* ]]
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
	# nor can the directory be moved aside and made anew
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
	run ak run --mount "$W/elsewhere" touch "$W/elsewhere/hooks/x" # control: only a workspace protects
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
