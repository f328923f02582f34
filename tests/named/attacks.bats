#!/usr/bin/env bats
# Regression tests of attacks on named sandboxes.

load helpers

gone() {
	! kill -0 "$1" 2>/dev/null
}

# The pid of a sandbox's init outside.
init_of() {
	field "$1" init
}

@test "a sandbox that stops every new process does not outlive its supervisor" {
	started stopper -v "$PROBE:/probe:ro"
	local init
	init=$(init_of stopper)
	ak exec -d stopper /probe stop-all
	for _ in 1 2 3; do # one of them is stopped between its fork and its first instruction
		as timeout -s KILL 1 "$AK" exec stopper true 3>&- || true
	done
	kill -9 "$(supervisor stopper)"
	until_true gone "$init"
	is_state stopper "stopped (supervisor died)"
	ak remove stopper
}

@test "nor does one that floods its init with signals, and it can still be entered and stopped" {
	started flooder -v "$PROBE:/probe:ro"
	local init
	init=$(init_of flooder)
	ak exec -d flooder /probe flood-init
	run as timeout -s KILL 20 "$AK" exec -T flooder echo entered 3>&-
	[ "$output" = entered ]
	kill -9 "$(supervisor flooder)"
	until_true gone "$init"
	ak start flooder
	ak stop --timeout 0 flooder
}

@test "stop and remove work while commands cannot be started" {
	started stuck -v "$PROBE:/probe:ro"
	ak exec -d stuck /probe stop-all
	for _ in 1 2 3; do
		as timeout -s KILL 1 "$AK" exec stuck true 3>&- || true
	done
	ak stop --timeout 100ms stuck
	ak remove stuck
}

@test "a link put in the way of what is shown does not show something else at the next start" {
	mkdir -p "$W/ws/data" "$W/victim"
	echo secret >"$W/victim/file"
	give "$W/ws" "$W/ws/data" "$W/victim" "$W/victim/file"
	started shown -v "$W/ws:/ws" -v "$W/ws/data:/data"
	ak exec shown sh -c "mv /ws/data /ws/old && ln -s $W/victim /ws/data"
	ak stop shown
	run ak start shown
	fails_with 125 "is a symbolic link (name the place that it leads to)"
	run ak fork shown other
	[ "$(state other)" = created ] || [ "$status" -ne 0 ]
	run ak start other
	[ "$status" -ne 0 ]
	# a link of the caller cannot be distinguished from that one
	ln -s "$W/ws" "$W/mine"
	run ak create linked -v "$W/mine:/mine"
	fails_with 125 "'$W/mine' is a symbolic link (name the place that it leads to)"
}

@test "our own directory is shown to no sandbox" {
	run ak run -v "$STATE:/state" ls /state
	fails_with 125 "which no sandbox may see"
	run ak run -v "$STATE/sandboxes:/state" ls /state
	fails_with 125 "which no sandbox may see"
	ak create seen
	run ak run -v "$SHARED/home:/home-of-mine" sh -c 'ls -A /home-of-mine/state; echo planted >/home-of-mine/state/x'
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[ ! -e "$STATE/x" ]
}

@test "a control socket answers nobody from inside" {
	only_user
	started target
	# the socket in its own directory, as if it had been moved there
	mkdir "$W/door"
	give "$W/door"
	as ln "$STATE/sandboxes/target/control.sock" "$W/door/control.sock"
	run ak run -v "$W/door:/door" -v "$TOP/tests/named/control.py:/control.py:ro" python3 -c '
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(5)
s.connect("/door/control.sock")
s.send(b"akfk" + b"\1\0" + b"\0\0" + b"\157\0\0\0" + b"\0\0\0\0")
print(len(s.recv(4096)))
'
	[ "$output" = 0 ] || [[ $output == *"reset"* ]] || [[ $output == *Error* ]]
}

@test "cp out does not go through a link that an earlier copy brought" {
	mkdir "$W/victim" "$W/out"
	give "$W/victim" "$W/out"
	started bringer
	ak exec bringer sh -c "mkdir /race && ln -s $W/victim /race/out"
	ak cp bringer:/race/out "$W/out/out"
	ak exec bringer sh -c 'rm /race/out && echo planted >/race/out'
	run ak cp bringer:/race/out "$W/out/out"
	[ -z "$(ls -A "$W/victim")" ]
}

@test "a command cannot make the file another one's output goes to a set-id program" {
	only_user
	started setter -i bb -v "$PROBE:/probe:ro"
	# the command does not get the caller's file
	ak exec -T setter sh -c 'readlink /proc/self/fd/1' >"$W/result"
	grep -q '^pipe:' "$W/result"
}

@test "the processes that copy have nothing but the sandbox user's own rights" {
	started narrow -p restrictive
	run ak cp /etc/hostname narrow:/etc/copied
	[ "$status" -ne 0 ]
	run ak cp /etc/hostname narrow:/tmp/copied
	[ "$status" -eq 0 ]
}

@test "what a sandbox does to its own /etc does not keep it from starting" {
	started spoiled
	ak exec spoiled sh -c 'rm -rf /etc/hosts /etc/hostname; mkdir -p /etc/hosts/x; ln -s /nowhere /etc/hostname'
	ak restart spoiled
	[ "$(ak exec spoiled cat /etc/hostname)" = spoiled ]
	grep -q spoiled <<<"$(ak exec spoiled cat /etc/hosts)"
}

@test "a checkpoint file fetches no image and brings no policy" {
	started exported -i bb --memory 64M
	local id
	id=$(ak checkpoint create exported)
	ak checkpoint export "$id" "$W/file"
	run as env AGENTKERNEL_HOME="$W/other" "$AK" checkpoint import "$W/file"
	fails_with 125 "which is not here"
	id=$(ak checkpoint import "$W/file")
	ak create --from "$id" fresh -p restrictive
	ak info fresh | grep -q '^profile  *restrictive'
}

# FS12: programs that other tools executed on the host because of their names (CVE-2026-41567)
@test "programs with well-known names are run by nobody, wherever they lie" {
	local name id names="tar gzip gunzip zstd xz git sh cp rm mount umount mke2fs nft ip iptables modprobe newuidmap newgidmap fusermount3"
	mkdir "$W/planted"
	for name in $names; do
		printf '#!/bin/sh\necho >"%s/ran.%s"\n' "$W" "$name" >"$W/planted/$name"
		chmod 755 "$W/planted/$name"
	done
	printf '#!/bin/busybox sh\necho >/ran\n' >"$W/inside"
	chmod 755 "$W/inside"
	give "$W/planted"
	found() { (cd "$W/planted" && as env PATH=".:$W/planted:$PATH" "$@" 3>&-); }
	found tar 2>/dev/null || true
	rm "$W/ran.tar" # control: an execution is noticed
	started planted -i bb
	for name in $names; do
		ak cp "$W/inside" "planted:/bin/$name"
	done
	ak exec planted /bin/tar 2>/dev/null || true
	ak exec planted /bin/busybox rm /ran # control: also inside

	found "$AK" cp /etc/hostname planted:/tmp/in
	found "$AK" cp planted:/tmp/in "$W/out"
	found "$AK" cp planted:/tmp - >"$W/out.tar"
	found "$AK" cp - planted:/tmp <"$W/out.tar"
	found "$AK" diff planted >/dev/null
	found "$AK" stats planted --no-stream >/dev/null
	id=$(found "$AK" checkpoint create planted)
	found "$AK" checkpoint export "$id" "$W/file"
	found "$AK" checkpoint import "$W/file"
	found "$AK" fork planted forked
	found "$AK" restart planted
	found "$AK" image import --quiet again "$SHARED/import/bb"
	found "$AK" image save again "$W/again.tar"
	found "$AK" image load --quiet "$W/again.tar"
	found "$AK" run -i again /bin/busybox true
	found "$AK" exec planted /bin/busybox test ! -e /ran
	found "$AK" remove -f forked
	run ls "$W"
	[[ "$output" != *ran.* ]]
}
