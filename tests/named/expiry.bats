#!/usr/bin/env bats
# What ends or waits by itself: a time that is over in every state, a copy that others wait for, a state
# directory that goes away, a disk that is full, cgroups whose makers were killed.
load helpers

setup_file() { # no image
	setup_shared
}

is_absent() {
	[ ! -e "$STATE/sandboxes/$1" ]
}

# A run that is killed together with the janitor that would have removed its groups: $left.
leave_groups() {
	client run --memory 64M --pids 20 sleep 75
	find_left() {
		mapfile -t left < <(find /sys/fs/cgroup -type d -name "agentkernel-$CLIENT-*" 2>/dev/null)
		[ "${#left[@]}" -gt 0 ]
	}
	until_true find_left
	sleep 0.3
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
