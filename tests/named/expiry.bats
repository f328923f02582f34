#!/usr/bin/env bats
# What ends or waits by itself: expiry in every state, a copy that others wait for, a state
# directory that is deleted, a full disk, cgroups of killed processes.
load helpers

setup_file() { # no image
	setup_shared
}

is_absent() {
	[ ! -e "$STATE/sandboxes/$1" ]
}

@test "list marks one whose time is over, and removes it" {
	ak create over-list --ttl 1s
	ak create over-json --ttl 1s
	sleep 1.3
	run ak list --all
	[[ "$output" == *"over-list"*"created (expired)"* ]] || { echo "$output"; false; }
	is_absent over-list
	is_absent over-json
	run ak list --all
	[[ "$output" != *over-list* ]]
	ak create over-json --ttl 1s
	sleep 1.3
	run ak list --all --json
	[[ "$output" == *'"name":"over-json"'*'"reason":"expired"'* ]] || { echo "$output"; false; }
	is_absent over-json
}

@test "start and exec remove one whose time is over, in words" {
	for act in "start" "restart" "exec -T"; do
		ak create over-act --ttl 1s
		sleep 1.3
		run ak $act over-act $([ "$act" = "exec -T" ] && echo true)
		fails_with 125 "sandbox 'over-act' has expired (--ttl) and is removed"
		is_absent over-act
	done
	ak gc --json | grep -q '"expired":0'
}

@test "one whose supervisor was killed is removed by gc and by list when its time is over" {
	for act in gc "list --all"; do
		ak create over-dead --ttl 2s && ak start over-dead
		[ "$act" = gc ] || ak pause over-dead
		kill -9 "$(supervisor over-dead)"
		sleep 2.3
		until_true is_state over-dead "stopped (expired)" || [ "$act" = gc ]
		ak $act >/dev/null
		is_absent over-dead
	done
}

@test "a command waits while the sandbox is copied, and is refused while it is paused" {
	started copied
	ak exec copied sh -c 'mkdir /root/many; cd /root/many; head -c 300M /dev/zero >big; i=0; while [ $i -lt 3000 ]; do echo $i >$i; i=$((i + 1)); done'
	for _ in 1 2 3; do
		ak checkpoint create copied >"$W/id" &
		copy=$!
		while [ -e "/proc/$copy" ]; do
			run ak exec -T copied echo through
			says through
		done
		wait "$copy"
		ak checkpoint remove "$(cat "$W/id")"
	done
	ak pause copied
	run ak exec -T copied true
	fails_with 125 "sandbox 'copied' is paused ('agentkernel resume copied')"
	ak remove -f copied
}

@test "a command that waits for a copy and is killed is forgotten" {
	started impatient
	as python3 "$TOP/tests/named/control.py" "$STATE/sandboxes/impatient/control.sock" freeze 2 3>&- &
	freezer=$!
	sleep 0.5
	client exec -T impatient touch /root/never
	sleep 0.5
	kill -9 "$CLIENT"
	wait "$freezer"
	run ak exec -T impatient ls /root/never
	[ "$status" -ne 0 ]
	[ "$(ak exec -T impatient echo well)" = well ]
	ak remove -f impatient
}

@test "a supervisor whose state directory was deleted ends" {
	STATE=$W/state
	started homeless
	ak exec -d homeless sleep 74
	mapfile -t groups < <(groups_of homeless)
	pids=("$(supervisor homeless)" "$(field homeless init)")
	rm -rf "$W/state"
	ended() { [ ! -e "/proc/${pids[0]}" ] && [ ! -e "/proc/${pids[1]}" ]; }
	until_true ended
	gone "${groups[@]}"
}

@test "a sandbox that is stopped on a full disk was stopped, and did not die" {
	[ "$(id -u)" -eq 0 ] || skip "mounts a small disk"
	needs_kernel 6.6 "a tmpfs that is an overlay's upper for everyone"
	mkdir "$W/small"
	mount -t tmpfs -o size=24m none "$W/small"
	give "$W/small"
	STATE=$W/small/state
	result=0
	started crowded || result=1
	head -c 100M /dev/zero >"$W/small/fill" 2>/dev/null || true
	ak stop crowded || result=2
	is_state crowded stopped || { echo "state: $(state crowded)"; result=3; }
	[ "$(supervisor crowded)" = "" ] || [ "$(supervisor crowded | tail -n 1)" = 0 ] || result=4
	rm "$W/small/fill"
	ak start crowded || result=5
	ak remove -f crowded || result=6
	until_true umount "$W/small"
	[ "$result" -eq 0 ] || { echo "step $result"; false; }
}

# Kills a run together with the janitor that would have removed its cgroups: $left.
leave_groups() {
	client run --memory 64M --pids 20 sleep 75
	find_left() {
		mapfile -t left < <(find /sys/fs/cgroup -type d -name "agentkernel-$CLIENT-*" 2>/dev/null)
		[ "${#left[@]}" -gt 0 ]
	}
	until_true find_left
	sleep 0.3
	kill -STOP "$CLIENT" # otherwise it would clean up when its sandbox ends
	kill -9 $(cat "/proc/$CLIENT/task/$CLIENT/children") "$CLIENT"
	wait "$CLIENT" || true
	find_left
}

@test "empty cgroups of runs that were killed are removed by gc, and by the next that makes one" {
	only_root
	for act in "gc" "run --memory 64M --pids 20 true"; do
		leave_groups
		sleep 3.2
		ak $act
		gone "${left[@]}"
	done
}

@test "an empty cgroup of a process that lives, or that is young, stays" {
	only_root
	leave_groups
	ak gc
	[ -d "${left[0]}" ] || { echo "a young one is gone"; false; }
	sleep 3.2
	mkdir "${left[0]%/*}/agentkernel-$$-00000000000000fe"
	ak gc
	gone "${left[@]}"
	[ -d "${left[0]%/*}/agentkernel-$$-00000000000000fe" ]
	rmdir "${left[0]%/*}/agentkernel-$$-00000000000000fe"
}
