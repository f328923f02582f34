#!/usr/bin/env bats
# Stopping sandboxes that are frozen, or that are being frozen meanwhile.
load helpers

setup_file() { # no image
	setup_shared
}

# stubborn NAME: takes seconds to stop, because a process ignores SIGTERM
stubborn() {
	started "$@"
	ak exec -d "$1" sh -c 'trap "" TERM; echo ready >/tmp/ready; while :; do sleep 0.1; done'
	until_true ak exec "$1" test -e /tmp/ready
}

# ended INIT SUPERVISOR: neither exists any more
ended() {
	local pid
	for pid; do
		[ ! -e "/proc/$pid" ] || return 1
	done
}

works_after() {
	ak gc >/dev/null
	ak list --all >/dev/null
	ak start "$1"
	[ "$(ak exec "$1" echo back)" = back ]
	ak remove -f "$1"
}

@test "a paused sandbox whose time is over is removed, and nothing of it stays" {
	ak create expiring --ttl 3s && ak start expiring
	ak exec -d expiring sleep 71
	mapfile -t groups < <(groups_of expiring)
	pids=("$(field expiring init)" "$(supervisor expiring)")
	ak pause expiring
	until_true ended "${pids[@]}"
	gone "${groups[@]}" "$STATE/sandboxes/expiring"
	ak gc >/dev/null
}

@test "a sandbox that is stopping is not paused any more, and stops" {
	stubborn pause-late
	pids=("$(field pause-late init)" "$(supervisor pause-late)")
	ak stop --timeout 2s pause-late &
	stop=$!
	sleep 0.5
	run ak pause pause-late
	fails_with 125 "sandbox 'pause-late' is stopping"
	wait "$stop"
	until_true ended "${pids[@]}"
	is_state pause-late stopped
	works_after pause-late
}

@test "a sandbox that is stopping is not frozen for a checkpoint, and stops" {
	stubborn save-late
	pids=("$(field save-late init)" "$(supervisor save-late)")
	ak stop --timeout 2s save-late &
	stop=$!
	sleep 0.5
	run ak checkpoint create save-late
	fails_with 125 "sandbox 'save-late' is stopping"
	wait "$stop"
	until_true ended "${pids[@]}"
	is_state save-late stopped
	works_after save-late
}

@test "a paused sandbox is stopped and removed like any other" {
	for act in "stop --timeout 1s" "remove -f"; do
		stubborn paused-end
		pids=("$(field paused-end init)" "$(supervisor paused-end)")
		ak pause paused-end
		ak $act paused-end
		until_true ended "${pids[@]}"
		ak remove -f paused-end
	done
}

@test "kill -9 of a paused sandbox's supervisor: nothing is frozen, nothing runs, no command needed" {
	started lost
	ak exec -d lost sleep 72
	mapfile -t groups < <(groups_of lost)
	init=$(field lost init)
	ak pause lost
	kill -9 "$(supervisor lost)"
	until_true ended "$init"
	until_true gone "${groups[@]}"
	is_state lost "stopped (supervisor died)"
	works_after lost
}

@test "kill -9 of the supervisor and of all its children but init: the next command thaws and ends the rest" {
	for way in gc start remove; do
		started "bereft-$way"
		ak exec -d "bereft-$way" sleep 73
		mapfile -t groups < <(groups_of "bereft-$way")
		init=$(field "bereft-$way" init) keeper=$(supervisor "bereft-$way")
		ak pause "bereft-$way"
		for child in $(cat "/proc/$keeper/task/$keeper/children"); do
			[ "$child" = "$init" ] || kill -9 "$child"
		done
		kill -9 "$keeper"
		until_true is_state "bereft-$way" "stopped (supervisor died)"
		case $way in
		gc) ak gc >/dev/null ;;
		start) ak start "bereft-$way" ;;
		remove) ak remove "bereft-$way" ;;
		esac
		until_true ended "$init"
		gone "${groups[@]}"
		ak remove -f "bereft-$way"
	done
}
