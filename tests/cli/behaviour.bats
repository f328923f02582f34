#!/usr/bin/env bats
# Exit statuses, streams, signals: as if there were no sandbox.
load helpers
bats_require_minimum_version 1.5.0

@test "the first command of the README works" {
	run ak run python3 -c 'print(6*7)'
	says 42
}

@test "exit status comes through" {
	for status_wanted in 0 1 2 42 124 125 126 127 255; do
		run -$status_wanted ak run sh -c "exit $status_wanted"
		[ -z "$output" ]
	done
}

@test "death by signal n is status 128+n" {
	run probe -- die 15
	[ "$status" -eq 143 ]
	run probe -- die 11
	[ "$status" -eq 139 ]
	run probe -- die 9
	[ "$status" -eq 137 ]
}

@test "a command that is not there is 127 and named" {
	run -127 ak run no-such-command
	fails_with 127 "no command 'no-such-command'"
	run -127 ak run /no/such/command
	fails_with 127 "no command '/no/such/command'"
}

@test "a command that is not executable is 126" {
	run ak run /etc/passwd
	fails_with 126 "'/etc/passwd' is not executable"
	run ak run /usr
	fails_with 126 "'/usr' is a directory"
}

@test "a script with a missing interpreter says so" {
	printf '#!/no/interpreter\n' >"$W/script"
	chmod 755 "$W/script"
	run ak run --mount "$W/script:/script:ro" /script
	fails_with 126 "needs an interpreter"
}

@test "stdout and stderr stay apart and carry only the command's bytes" {
	ak run sh -c 'echo out; echo err >&2' >"$W/out" 2>"$W/err"
	[ "$(cat "$W/out")" = out ]
	[ "$(cat "$W/err")" = err ]
}

@test "stdin comes through a pipe" {
	result=$(seq 100000 | ak run cat | md5sum)
	[ "$result" = "$(seq 100000 | md5sum)" ]
}

@test "stdin may be closed" {
	run bash -c "$(declare -f as ak); AK=$AK AS=$AS W=$W; ak run sh -c 'cat; echo done' <&-"
	says "done"
}

@test "stdout may be closed" {
	run bash -c "$(declare -f as ak); AK=$AK AS=$AS W=$W; ak run true >&-"
	[ "$status" -eq 0 ]
}

@test "a reader that goes away ends the writer with SIGPIPE" {
	run bash -c "$(declare -f as ak); AK=$AK AS=$AS W=$W; ak run yes | head -1; exit \${PIPESTATUS[0]}"
	[ "$status" -eq 141 ]
}

@test "a closed stdout is seen as closed while the command runs on" {
	run as python3 - "$AK" <<-'PY'
	import subprocess, sys, time
	start = time.time()
	p = subprocess.Popen([sys.argv[1], "run", "sh", "-c", "echo x; exec >&-; sleep 3"],
		stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
	text = p.stdout.read()
	took = time.time() - start
	print(text, "early" if took < 2 else "late", p.wait())
	PY
	says "b'x\\n' early 0"
}

@test "a gigabyte flows unharmed" {
	[ "$(ak run head -c 1G /dev/zero | wc -c)" -eq $((1 << 30)) ]
}

@test "/dev/stdout and /dev/stderr can be opened on files" {
	only_user # root's sandboxes have another id, which may not open root's file
	cd "$W"
	as sh -c "$AK run sh -c 'echo a >/dev/stdout; echo b >/dev/stderr' >o 2>e"
	[ "$(cat "$W/o")" = a ] && [ "$(cat "$W/e")" = b ]
}

@test "/dev/stdout can be opened on pipes and terminals" {
	[ "$(as bash -c "$AK run sh -c 'echo a >/dev/stdout' | cat")" = a ]
	# afterwards the pipe has its owner again
	run as bash -c "{ $AK run sh -c 'echo a >/dev/stdout'; echo b >/dev/stdout; stat -Lc %u /dev/stdout; } | cat"
	says "a
b
$(as id -u)"
	SHELL=/bin/bash script -qec "$(declare -f as ak); AK=$AK AS=$AS W=$W; ak run -T sh -c 'echo hello >/dev/stdout'" "$W/typescript" </dev/null
	grep -q hello "$W/typescript"
}

@test "SIGTERM and SIGINT reach the command" {
	for signal in TERM INT USR1; do
		# python starts it, because a shell's background jobs ignore SIGINT
		run as python3 - "$AK" "$signal" <<-'PY'
		import signal, subprocess, sys
		p = subprocess.Popen([sys.argv[1], "run", "sh", "-c",
			"trap 'echo caught; exit 7' TERM INT USR1; echo ready; while :; do sleep 0.1; done"],
			stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
		assert p.stdout.readline() == b"ready\n"
		p.send_signal(getattr(signal, "SIG" + sys.argv[2]))
		print(p.stdout.read().decode().strip(), p.wait())
		PY
		says "caught 7"
	done
}

@test "the deadline is 124 and said in words" {
	run ak run --timeout 200ms sleep 30
	fails_with 124 "ended after 200ms"
}

@test "the deadline also ends what ignores signals" {
	start=$(date +%s)
	run probe --timeout 300ms -- ignore-signals 30
	[ "$status" -eq 124 ]
	[ $(($(date +%s) - start)) -lt 10 ]
}

@test "the deadline also ends a stopped command" {
	run ak run --timeout 300ms sh -c 'kill -STOP $$'
	[ "$status" -eq 124 ]
}

@test "what was double-forked into its own session ends with the command" {
	run probe --mount "$W:/w" -- daemonize /w/alive
	says ok
	sleep 0.3
	before=$(stat -c %s "$W/alive" 2>/dev/null || echo 0)
	sleep 0.5
	[ "$(stat -c %s "$W/alive" 2>/dev/null || echo 0)" -eq "$before" ]
}

@test "what was double-forked into its own session ends at the deadline" {
	run probe --timeout 500ms --mount "$W:/w" -- daemonize /w/alive 30
	[ "$status" -eq 124 ]
	before=$(stat -c %s "$W/alive")
	[ "$before" -gt 0 ]
	sleep 0.5
	[ "$(stat -c %s "$W/alive")" -eq "$before" ]
}

@test "the sandbox dies with its supervisor" {
	as "$AK" run --mount "$PROBE:/probe:ro" --mount "$W:/w" /probe daemonize /w/alive 60 &
	job=$!
	for _ in $(seq 100); do [ -s "$W/alive" ] && break; sleep 0.05; done
	[ -s "$W/alive" ]
	supervisor=$(pgrep -f "^$AK run --mount $PROBE" -o)
	kill -KILL "$supervisor"
	wait "$job" || true
	sleep 0.3
	before=$(stat -c %s "$W/alive")
	sleep 0.5
	[ "$(stat -c %s "$W/alive")" -eq "$before" ]
}

@test "--json prints one valid object and nothing else" {
	run ak run --json sh -c 'echo out; echo err >&2; printf "\377\001\"\\\\"; exit 3'
	[ "$status" -eq 3 ]
	python3 - "$output" <<-'PY'
	import json, sys
	r = json.loads(sys.argv[1])
	assert r["exit_code"] == 3 and r["signal"] is None, r
	assert r["stdout"] == 'out\n\ufffd\x01"\\', repr(r["stdout"])
	assert r["stderr"] == "err\n"
	assert r["timed_out"] is False and r["oom"] is False
	assert r["image"] == "host" and r["backend"] == "native"
	assert r["duration_ms"] >= 0 and r["cpu_ms"] >= 0 and r["peak_memory"] > 0
	PY
}

@test "--json tells about signals and deadlines" {
	run ak run --json --timeout 200ms sleep 30
	[ "$status" -eq 124 ]
	python3 -c 'import json,sys; r=json.loads(sys.argv[1]); assert r["timed_out"] and r["exit_code"]==124, r' "$output"
	run probe --json -- die 11
	[ "$status" -eq 139 ]
	python3 -c 'import json,sys; r=json.loads(sys.argv[1]); assert r["signal"]==11 and r["exit_code"]==139, r' "$output"
}

@test "--json output is cut at its limit, and says so" {
	ak run --json head -c 20M /dev/zero >"$W/json"
	python3 -c 'import json,sys; r=json.load(open(sys.argv[1])); assert r["stdout_cut"] and len(r["stdout"])==16<<20, len(r["stdout"])' "$W/json"
}

@test "options of the command are not taken for ours" {
	run ak run echo --timeout -p --help
	says "--timeout -p --help"
	run ak run -- echo -- x
	says "-- x"
}

@test "works from a working directory that the sandbox cannot see" {
	mkdir "$W/gone"
	run bash -c "$(declare -f as ak); AK=$AK AS=$AS W=$W; cd $W/gone && rmdir $W/gone && ak run echo fine"
	says fine
}

@test "a sandbox inside a sandbox refuses in clear words" {
	# the memory is for a launcher built with ASan, which reserves terabytes
	run ak run --memory 32T --mount "$AK:/ak:ro" /ak run --no-network true
	fails_with 125 "sandboxes do not nest"
}

@test "umask, signals and limits of the caller are not inherited" {
	run bash -c "$(declare -f as ak); AK=$AK AS=$AS W=$W; umask 777; trap '' PIPE HUP; ak run sh -c 'umask; grep SigIgn /proc/self/status; ulimit -c'"
	[[ "$output" == *"0022"* ]]
	[[ "$output" == *"SigIgn:	0000000000000000"* ]]
	[[ "${lines[2]}" == 0 ]]
}

@test "a caller that ignores SIGCHLD gets the status all the same" {
	run as python3 - "$AK" <<-'PY'
	import os, signal, sys
	signal.signal(signal.SIGCHLD, signal.SIG_IGN)
	read, write = os.pipe()
	if os.fork() == 0:
	    # an intermediate process that can wait: we cannot, we ignore
	    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
	    if (pid := os.fork()) == 0:
	        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
	        os.execv(sys.argv[1], [sys.argv[1], "run", "sh", "-c", "exit 7"])
	    os.write(write, str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
	    os._exit(0)
	print(os.read(read, 10).decode())
	PY
	says 7
}

@test "localhost works inside" {
	run probe -- local-server
	says ok
}

@test "help, version and completions answer" {
	run ak help
	[[ "$output" == *"run "* && "$output" == *"doctor"* ]]
	run ak run --help
	[[ "$output" == *"--memory SIZE"* && "$output" == *"Examples:"* ]]
	run ak help policy show
	[[ "$output" == *"policy show"* ]]
	run ak version
	[[ "$output" == "agentkernel "* ]]
	ak completion bash | bash -n
}

@test "doctor finds every wall it needs here" {
	run ak doctor
	[ "$status" -eq 0 ]
	[[ "$output" == *"landlock"*"ok"* ]]
	run ak doctor --json
	python3 -c 'import json,sys; r=json.loads(sys.argv[1])["walls"]; assert len(r) >= 8 and all("state" in f for f in r)' "$output"
}
