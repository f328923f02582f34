#!/usr/bin/env bats
# The walls of tests/cli/walls.bats, seen from `exec`: the same for the tenth command as for the
# first, detached or not, after a restart and after a crash. Sandboxes h and b are of the host's
# image and of image bb, hr and br the same with the restrictive profile.
load helpers

prepare_file() {
	local image
	for image in host bb; do
		started "${image:0:1}" --image "$image" --mount "$PROBE:/probe:ro" || return 1
		started "${image:0:1}r" -p restrictive --image "$image" --mount "$PROBE:/probe:ro" || return 1
	done
}

# expect WORDS NAME ACTION [ARG...]: the probe's answer; WORDS may be several, with | between
expect() {
	local words=$1
	shift
	output=$(inside "$@" 2>&1)
	[[ "|$words|" == *"|$output|"* ]] || { echo "$*: '$output', not $words"; return 1; }
}

# The sentences that matter most, in one sandbox.
check_walls() {
	local name=$1 path call restrictive="ok effective=0 permitted=0 inheritable=0 bounding=0 ambient=0 nnp=1"
	case $name in
	*r)
		expect "$restrictive" "$name" caps || return 1
		expect "EPERM|EINVAL" "$name" setuid 0 || return 1
		expect EPERM "$name" trace-child || return 1
		expect ENETUNREACH "$name" connect 192.0.2.1 80 || return 1
		;;
	*)
		expect "ok effective=404fb permitted=404fb inheritable=0 bounding=404fb ambient=0 nnp=1" "$name" caps || return 1
		expect EINVAL "$name" setuid 70000 || return 1
		;;
	esac
	for path in "$W/canary" "/proc/1/root$W/canary" "/proc/self/root/../../$W/canary" "$STATE/audit.jsonl" "$SHARED/agentkernel"; do
		expect "ENOENT|EACCES" "$name" read "$path" || return 1
	done
	for path in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/self/oom_score_adj /proc/self/uid_map /proc/1/exe /proc/1/mem; do
		expect "EROFS|EACCES|ENOENT" "$name" write "$path" || return 1
	done
	for call in bpf perf_event_open io_uring_setup keyctl userfaultfd open_by_handle_at pivot_root move_mount open_tree fsopen umount; do
		expect EPERM "$name" syscall "$call" || return 1
	done
	expect EPERM "$name" mount /tmp || return 1
	expect EPERM "$name" unshare 0x10000000 || return 1
	expect ENOSYS "$name" clone3 0x10000000 || return 1
	expect EPERM "$name" setns /proc/self/ns/net || return 1
	expect EPERM "$name" mknod /tmp/disk || return 1
	expect EPERM "$name" socket 2 3 1 || return 1
	expect EAFNOSUPPORT "$name" socket 40 2 0 || return 1
	expect "ok 0 1 2" "$name" fds || return 1
	expect EPERM "$name" ptrace 1 || return 1
	expect EACCES "$name" read /proc/1/environ || return 1
	expect EPERM "$name" limit-init || return 1
	for call in 4 7 6; do
		expect EPERM "$name" rlimit "$call" || return 1
	done
	expect ENOENT "$name" read /sys/kernel/mm || return 1
}

@test "the walls stand in every command" {
	echo canary >"$W/canary"
	for name in h b hr br; do
		check_walls "$name"
	done
	run as "$PROBE" read "$W/canary" # control
	says ok
	run as "$PROBE" syscall io_uring_setup
	says ok
}

@test "the walls stand after stop and start, and after kill -9 of the supervisor" {
	echo canary >"$W/canary"
	ak restart h b hr br
	check_walls h
	check_walls br
	for name in h b hr br; do
		kill -9 "$(supervisor "$name")"
	done
	for name in h b hr br; do
		is_stopped() { is_state "$name" "stopped (supervisor died)"; }
		until_true is_stopped
		ak start "$name"
	done
	check_walls hr
	check_walls b
}

@test "a detached command and one at a terminal have the same walls" {
	for name in h b hr br; do
		attached=$(inside "$name" caps)
		id=$(ak exec -d "$name" /probe caps)
		run ak logs -f "$name" "$id"
		says "$attached"
		id=$(ak exec -d "$name" /probe syscall bpf)
		run ak logs -f "$name" "$id"
		says EPERM
		run ak exec -t "$name" /probe syscall bpf </dev/null
		[ "${output%$'\r'}" = EPERM ]
		run ak exec -t "$name" /probe fds </dev/null
		[ "${output%$'\r'}" = "ok 0 1 2" ]
	done
}

@test "no capabilities as another user, and none in a restrictive sandbox" {
	has_many_ids || skip "needs more than one id"
	run ak exec -u app b /probe caps
	says "ok effective=0 permitted=0 inheritable=0 bounding=0 ambient=0 nnp=1"
	run ak exec -u 0:0 br true
	fails_with 125 "the restrictive profile has no root inside"
	run ak exec -u app b sh -c 'id -u; id -G'
	says "1234
1234 55"
}

@test "seccomp, no_new_privs and the user namespace are on in each process" {
	for name in h b hr br; do
		run ak exec "$name" sh -c 'grep -E "^(Seccomp|NoNewPrivs):" /proc/self/status; cat /proc/self/uid_map'
		[[ "$output" == *"NoNewPrivs:	1"* && "$output" == *"Seccomp:	2"* ]]
		read -r _ outside _ <<<"${lines[2]}"
		[ "${AS:-root}" != root ] || [ "$outside" -ge $((0x70000000)) ]
	done
}

@test "the kernel's secrets are masked, other processes and devices not there" {
	for name in h b hr br; do
		run ak exec "$name" sh -c 'cat /proc/keys /proc/kallsyms /proc/kcore /proc/timer_list 2>/dev/null | wc -c; ls /sys 2>/dev/null | wc -l; ls /dev | sort | tr "\n" " "'
		says "0
0
fd full null ptmx pts random shm stderr stdin stdout tty urandom zero "
		run ak exec "$name" sh -c 'for p in /proc/[0-9]*; do cat $p/comm; done | grep -c -E "systemd|bats|dockerd"'
		says 0
	done
}

@test "two sandboxes see nothing of each other" {
	ak exec h sh -c 'echo secret >/tmp/h-only; echo secret >/dev/shm/h-only'
	id=$(ak exec -d h sh -c 'exec sleep 77')
	run ak exec hr sh -c 'ls /tmp/h-only /dev/shm/h-only 2>/dev/null; cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -c "sleep 7[7]"'
	says 0
	run ak exec b sh -c 'ls /tmp/h-only /dev/shm/h-only 2>/dev/null; kill -0 -1 2>/dev/null; cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -c "sleep 7[7]"'
	says 0
	run ak exec h sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -c "sleep 7[7]"' # control
	says 1
	ak kill h "$id"
}

@test "the variables are the sandbox's and not the caller's" {
	run as env SECRET=hunter2 BASH_ENV=/x LD_PRELOAD= "$AK" exec h env
	[[ "$output" != *hunter2* && "$output" != *BASH_ENV* ]]
	[[ "$output" == *PATH=* && "$output" == *HOME=* ]]
}

@test "without a network there is none, in each command and after a restart" {
	python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); s.listen(); print(s.getsockname()[1],flush=True); s.settimeout(30)
try:
    s.accept(); open("'"$W"'/hit","w").close()
except OSError: pass' >"$W/port" 3>&- &
	server=$!
	until_true test -s "$W/port"
	port=$(cat "$W/port")
	for image in host bb; do
		started "net-$image" --no-network --image "$image" --mount "$PROBE:/probe:ro"
		for round in 1 2; do
			expect ENETUNREACH "net-$image" connect 192.0.2.1 80
			expect ECONNREFUSED "net-$image" connect 127.0.0.1 "$port"
			ak restart "net-$image"
		done
	done
	for name in h b hr br; do
		expect ECONNREFUSED "$name" connect 127.0.0.1 "$port"
	done
	[ ! -e "$W/hit" ]
	run "$PROBE" connect 127.0.0.1 "$port" # control
	says ok
	wait "$server"
}

@test "a set-id file cannot be left in a directory of the host, by exec either" {
	touch "$W/tool"
	give "$W/tool"
	started setid --mount "$W:/w" --mount "$PROBE:/probe:ro"
	for mode in 04755 02755; do
		expect EPERM setid chmod /w/tool "$mode"
	done
	as bash -c "$AK exec setid /probe fchmod 1 06755 >$W/tool"
	[ "$(cat "$W/tool")" = EPERM ]
	[ "$(stat -c %a "$W/tool")" = 644 ]
	# in h there is no directory of the host, but a stream is one
	as bash -c "$AK exec h /probe fchmod 1 06755 >$W/tool"
	[ "$(cat "$W/tool")" = EPERM ]
}

@test "a file passed for one direction cannot be opened for the other" {
	echo secret >"$W/out"
	give "$W/out"
	as bash -c "$AK exec h /probe reopen 1 0 >>$W/out"
	grep -qx EACCES "$W/out"
	as bash -c "$PROBE reopen 1 0 >>$W/out" # control
	grep -qx ok "$W/out"
}

@test "one command's file is no other's: what an earlier one was given is closed to the next" {
	echo secret >"$W/file"
	give "$W/file"
	as bash -c "exec 3<$W/file; $AK exec h sh -c 'cat >/dev/null; exec sleep 60' <$W/file" 3>&- &
	client=$!
	sleep 0.3
	run ak exec h sh -c 'for p in /proc/[0-9]*; do cat $p/fd/0 $p/fd/3 2>/dev/null; done; echo over'
	[[ "$output" != *secret* ]] || { echo "$output"; false; }
	run ak exec hr sh -c 'for p in /proc/[0-9]*; do cat $p/fd/0 2>/dev/null; done; echo over'
	says over
	kill "$client"
	wait "$client" || true
}

@test "pid 1 cannot be ended or reached from inside" {
	for name in h b hr br; do
		for signal in 1 2 9 15 19; do
			inside "$name" kill 1 "$signal" >/dev/null || true
		done
		ak exec "$name" sh -c 'kill -9 -1' || true
		sleep 0.05
		ak exec "$name" true
		is_state "$name" running
	done
}

@test "the descriptors of init are the commands' neither to see nor to use" {
	for name in h hr b br; do
		run ak exec "$name" sh -c 'ls -l /proc/1/fd /proc/1/cwd /proc/1/root /proc/1/exe 2>&1 | grep -c -- "->"'
		says 0
	done
}
