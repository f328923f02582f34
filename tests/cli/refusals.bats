#!/usr/bin/env bats
# Programs that need what every sandbox refuses: the end of a run says so, once, and only for these
# programs.

load helpers
bats_require_minimum_version 1.5.0

# program NAME STATUS: a program of that name that exits with STATUS
program() {
	mkdir -p "$W/bin"
	printf '#!/bin/sh\nexit %s\n' "$2" >"$W/bin/$1"
	chmod -R a+rx "$W/bin"
}

# told TEXT: the last run printed exactly one line of ours, with this text
told() {
	[ "$(grep -c '^agentkernel:' <<<"$output")" -eq 1 ] || { echo "$output"; false; }
	[[ "$output" == *"agentkernel: $1"* ]] || { echo "no '$1' in: $output"; false; }
}

@test "a program that needs what is refused is told so when it fails" {
	echo '{}' >package.json # would cause another hint
	program ping 2
	run ak run -v "$W/bin:/mnt/bin:ro" -- /mnt/bin/ping -c 1 example.org
	[ "$status" -eq 2 ]
	told "'ping' needs ICMP or raw sockets, which sandboxes do not have"
	for name in podman buildah bwrap unshare docker; do
		program "$name" 125
		run ak run -v "$W/bin:/mnt/bin:ro" -- "/mnt/bin/$name" some thing
		[ "$status" -eq 125 ]
		told "'$name' "
	done
}

@test "the real ones fail in this way" {
	run ak run unshare -U true
	[ "$status" -ne 0 ]
	told "'unshare' makes namespaces, which is refused inside a sandbox"
	[[ "$output" == *"Operation not permitted"* ]]
}

@test "a browser is told of --no-sandbox unless it has it" {
	program chromium 1
	run ak run -v "$W/bin:/mnt/bin:ro" -- /mnt/bin/chromium --headless about:blank
	told "'chromium' makes a sandbox of its own, which is refused inside this one: add --no-sandbox"
	run ak run -v "$W/bin:/mnt/bin:ro" -- /mnt/bin/chromium --headless --no-sandbox about:blank
	[ "$status" -eq 1 ]
	[ -z "$output" ]
}

@test "nothing is said of success, of another program, of what a shell runs, or of a deadline" {
	program ping 0
	run ak run -v "$W/bin:/mnt/bin:ro" -- /mnt/bin/ping
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	program pingu 2
	run ak run -v "$W/bin:/mnt/bin:ro" -- /mnt/bin/pingu ping
	[ "$status" -eq 2 ]
	[ -z "$output" ]
	program ping 2
	run ak run -v "$W/bin:/mnt/bin:ro" -- sh -c /mnt/bin/ping
	[ "$status" -eq 2 ]
	[ -z "$output" ]
	printf '#!/bin/sh\nsleep 60\n' >"$W/bin/ping"
	run ak run --timeout 300ms -v "$W/bin:/mnt/bin:ro" -- /mnt/bin/ping
	[ "$status" -eq 124 ]
	told "the command was ended after 300ms"
}

@test "with --json nothing is said beside the object" {
	program ping 2
	run --separate-stderr ak run --json -v "$W/bin:/mnt/bin:ro" -- /mnt/bin/ping
	[ "$status" -eq 2 ]
	[ -z "$stderr" ]
	[[ "$output" == '{"exit_code":2,'* ]]
}

@test "exec says it too" {
	program ping 2
	ak create -v "$W/bin:/mnt/bin:ro" pinger
	ak start pinger
	run ak exec pinger /mnt/bin/ping
	[ "$status" -eq 2 ]
	told "'ping' needs ICMP"
	run ak exec pinger sh -c 'exit 2'
	[ -z "$output" ]
	ak remove -f pinger
}
