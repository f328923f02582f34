#!/usr/bin/env bats
# An HTTP server with supervisors that do not answer.

load helpers

# bats file_tags=once
setup_file() {
	setup_shared || return 1
	export SOCKET=$SHARED/home/serve.sock
	as sh -c 'echo $$ >"$1/home/serve.pid" && exec "$2" serve --listen "unix:$3"' sh "$SHARED" "$AK" "$SOCKET" \
		>"$SHARED/serve.log" 2>&1 3>&- &
	for _ in $(seq 100); do
		[ -S "$SOCKET" ] && break
		sleep 0.05
	done
}

teardown_file() {
	kill "$(cat "$SHARED/home/serve.pid")"
	remove_shared
}

# call METHOD PATH [BODY]: the status on the first line, then the answer
call() {
	curl -sS --max-time 60 --unix-socket "$SOCKET" -X "$1" -H 'Content-Type: application/json' ${3:+-d "$3"} -w '\n%{http_code}' "http://localhost$2" |
		awk '{ lines[NR] = $0 } END { print lines[NR]; for (i = 1; i < NR; i++) print lines[i] }'
}

# The supervisor of a running sandbox: the parent of its init.
supervisor() {
	ps -o ppid= -p "$(ak info --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')" | tr -d ' '
}

@test "three silent supervisors with forty calls each leave places for others, and for list, stop and delete" {
	local name pids=() jobs=() i
	for name in mute1 mute2 mute3 well; do
		started "$name"
	done
	for name in mute1 mute2 mute3; do
		pids+=("$(supervisor "$name")")
	done
	kill -STOP "${pids[@]}"
	for i in $(seq 40); do
		for name in mute1 mute2 mute3; do
			call POST "/sandboxes/$name/exec" '{"command": ["true"]}' >"$W/$name.$i" 2>&1 3>&- &
			jobs+=($!)
		done
	done
	sleep 2
	began=$SECONDS
	[ "$(call GET /sandboxes | head -1)" = 200 ]
	[ "$(call GET /sandboxes/well | head -1)" = 200 ]
	run call POST /sandboxes/well/stop
	[ "${lines[0]}" = 200 ]
	run call DELETE /sandboxes/mute3
	[ "${lines[0]}" = 200 ]
	run call DELETE /sandboxes/well
	[ "${lines[0]}" = 200 ]
	[ $((SECONDS - began)) -le 12 ]
	[[ "$(call GET /health)" == 200* ]]
	wait "${jobs[@]}" || true
	[ $((SECONDS - began)) -le 45 ] # nobody waited forever
	cat "$W"/mute[12].* | sort | uniq -c | sort -rn | head -5
	grep -q "process ${pids[0]}, is stopped" "$W"/mute1.*
	grep -l 'Too many calls at once' "$W"/mute?.* >/dev/null
	[ "$(call GET /ready | head -1)" = 200 ]
	curl -sS --unix-socket "$SOCKET" http://localhost/metrics >"$W/metrics"
	[ "$(sed -n 's/^agentkernel_unanswered_total //p' "$W/metrics")" -ge 32 ]
	grep -q '^agentkernel_build_info{version="[0-9.]*",build="[0-9a-z-]*"} 1' "$W/metrics"
	kill -CONT "${pids[0]}" "${pids[1]}"
	[ "$(ak exec mute1 echo back)" = back ]
}

@test "ready says why it is not" {
	[ "$(call GET /ready)" = $'200\n{"success":true,"data":"ready"}' ]
	mv "$AK" "$AK.away"
	run call GET /ready
	mv "$AK.away" "$AK"
	[ "${lines[0]}" = 503 ]
	[[ "$output" == *"the program agentkernel is gone"* ]]
	[ "$(call GET /health | head -1)" = 200 ]
}
