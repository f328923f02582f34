#!/usr/bin/env bats
# A supervisor that is stopped or hangs: every command ends in time, with a message that names the
# process and what to do, and continues with the next sandbox.

load helpers

# The parent of its init.
supervisor() {
	ps -o ppid= -p "$(ak info --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')" | tr -d ' '
}

# silent NAME: a sandbox whose supervisor is stopped
silent() {
	started "$1"
	pid=$(supervisor "$1")
	kill -STOP "$pid"
}

# bats test_tags=once
# has_gone PID: it has ended, or does so within a moment: its lock is free before the kernel has
# removed it
has_gone() {
	for ((i = 0; i < 50; i++)); do
		grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status" 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}

@test "no command waits for ever for a supervisor that is stopped, and each says which process that is" {
	local jobs=() pids=() i=0 words
	silent mute
	while read -r words; do
		# shellcheck disable=SC2086 # words
		(
			began=$SECONDS
			result=0
			as timeout -s KILL 60 "$AK" $words >"$W/out.$i" 2>&1 3>&- </dev/null || result=$?
			echo "$result $((SECONDS - began))" >"$W/end.$i"
		) 3>&- &
		pids+=($!)
		jobs+=("$words")
		i=$((i + 1))
	done <<-'COMMANDS'
	exec mute true
	exec -d mute true
	exec --timeout 1s mute sleep 60
	ps mute
	stats --no-stream mute
	cp mute:/etc/hosts .
	update mute --pids 50
	kill mute 00000001
	COMMANDS
	wait "${pids[@]}"
	kill -CONT "$pid"
	for ((i = 0; i < ${#jobs[@]}; i++)); do
		read -r result seconds <"$W/end.$i"
		[ "$result" -ne 0 ] && [ "$result" -ne 137 ] || { echo "${jobs[$i]}: status $result: $(cat "$W/out.$i")"; return 1; }
		[ "$seconds" -le 25 ] || { echo "${jobs[$i]}: $seconds s"; return 1; }
		grep -q "process $pid, is stopped ('kill -CONT $pid' lets it go on" "$W/out.$i" || { echo "${jobs[$i]}: $(cat "$W/out.$i")"; return 1; }
	done
	[ "$(ak exec mute echo back)" = back ] # and nothing is damaged
}

@test "remove -f removes a sandbox whose supervisor does not answer" {
	silent gone
	as timeout -s KILL 60 "$AK" remove -f gone 3>&-
	run ak info gone
	[ "$status" -eq 125 ]
	has_gone "$pid"
}

@test "stop -f and restart -f end a sandbox whose supervisor does not answer, in seconds" {
	silent still
	began=$SECONDS
	as timeout -s KILL 60 "$AK" stop -f still 3>&-
	[ $((SECONDS - began)) -le 8 ]
	has_gone "$pid"
	run ak info --json still
	[[ "$output" == *'"reason":"killed, its supervisor did not answer"'* ]]
	ak start still
	ak exec still sh -c 'echo kept >~/file'
	pid=$(supervisor still)
	kill -STOP "$pid"
	as timeout -s KILL 60 "$AK" restart -f still 3>&-
	[ "$(ak exec still sh -c 'cat ~/file')" = kept ]
}

@test "stop -f ends a paused sandbox, and one whose supervisor has lost its socket" {
	started lost
	ak pause lost
	as timeout -s KILL 60 "$AK" stop -f lost 3>&-
	[ "$(ak info --json lost | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])')" = stopped ]
	ak start lost
	pid=$(supervisor lost)
	rm "$STATE/sandboxes/lost/control.sock"
	as timeout -s KILL 60 "$AK" stop -f lost 3>&-
	has_gone "$pid"
	ak remove lost
}

@test "exec that is interrupted while nobody answers ends" {
	silent held
	as "$AK" exec held sleep 60 >"$W/out" 2>&1 3>&- &
	shell=$!
	sleep 1
	client=$(pgrep -P "$shell")
	began=$SECONDS
	kill -INT "$client"
	wait "$shell" || result=$?
	kill -CONT "$pid"
	[ "${result:-0}" -ne 0 ]
	[ $((SECONDS - began)) -le 8 ]
	grep -q "is stopped" "$W/out"
}

@test "a daemon that is stopped makes no run wait" {
	as "$AK" daemon start 3>&-
	daemon=$(as "$AK" daemon status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')
	kill -STOP "$daemon"
	began=$SECONDS
	[ "$(ak run echo there)" = there ]
	[ $((SECONDS - began)) -le 3 ]
	kill -CONT "$daemon"
	as "$AK" daemon stop
}
