#!/usr/bin/env bats
# Protections of commands started by `exec`, beyond tests/escape: detached commands and those with a
# terminal, other users, several commands and sandboxes beside each other. Sandboxes h and b have
# the host's image and image bb, hr and br the same with the restrictive profile.
load helpers

prepare_file() {
	local image
	for image in host bb; do
		started "${image:0:1}" --image "$image" --mount "$PROBE:/probe:ro" || return 1
		started "${image:0:1}r" -p restrictive --image "$image" --mount "$PROBE:/probe:ro" || return 1
	done
}

# expect WORDS NAME ACTION [ARG...]: the probe's answer; WORDS may be several, separated by |
expect() {
	local words=$1
	shift
	output=$(inside "$@" 2>&1)
	[[ "|$words|" == *"|$output|"* ]] || { echo "$*: '$output', not $words"; return 1; }
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
	# h has no directory of the host, but a stream is a file of it
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
