#!/usr/bin/env bats
# libagentkernel: programs of others that link it.

load helpers

prepare_file() {
	cp "$BUILD/example" "$BUILD/libcall" "$BUILD"/libagentkernel.so.* "$SHARED/"
}

# A program of its own that knows where agentkernel is.
other() {
	as env AGENTKERNEL_PROGRAM="$AK" timeout 60 "$@" 3>&-
}

@test "the program of the README runs a command, streams its output and has its exit status" {
	run other "$SHARED/example"
	[ "$status" -eq 3 ]
	[ "$output" = hello ]
}

@test "the example in README is the one that is built" {
	diff "$TOP/share/examples/run.c" <(awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$TOP/README.md")
}

# bats test_tags=once
@test "it is installed with a header, a pkg-config file and a manual, and C and C++ programs build with these" {
	make -s -C "$TOP" install DESTDIR="$W/root" PREFIX=/opt/our/own >/dev/null
	flags=$(PKG_CONFIG_SYSROOT_DIR=$W/root PKG_CONFIG_PATH=$W/root/opt/our/own/lib/pkgconfig pkg-config --cflags --libs libagentkernel)
	# shellcheck disable=SC2086 # words
	gcc -Wall -Wextra -Wpedantic -Werror "$TOP/share/examples/run.c" -o program $flags -Wl,-rpath,"$W/root/opt/our/own/lib"
	printf '#include <agentkernel.h>\nint main() { agentkernel *ak = nullptr; agentkernel_error e{}; int r = agentkernel_open(nullptr, &ak, &e); agentkernel_close(ak); return r; }\n' >other.cc
	# shellcheck disable=SC2086 # words
	g++ -Wall -Wextra -Werror other.cc -o other $flags -Wl,-rpath,"$W/root/opt/our/own/lib"
	run as env -i PATH=/usr/bin:/bin HOME="$SHARED/home" AGENTKERNEL_HOME="$STATE" AGENTKERNEL_IMAGE=host ./program 3>&- # finds it beside the library
	[ "$status" -eq 3 ] && [ "$output" = hello ]
	run as env -i PATH=/usr/bin:/bin HOME="$SHARED/home" ./other
	[ "$status" -eq 0 ]
	[ -s "$W/root/opt/our/own/share/man/man3/libagentkernel.3" ]
	make -s -C "$TOP" uninstall DESTDIR="$W/root" PREFIX=/opt/our/own >/dev/null 2>&1
	[ -z "$(find "$W/root" -type f -o -type l)" ]
}

@test "threads call at once, every worker is reaped and no child of the program is waited for" {
	run other "$SHARED/libcall" -threads 8
	[ "$output" = "0 failed, no child left" ]
}

@test "a command that does not read its input does not end the program by SIGPIPE" {
	run other "$SHARED/libcall" -pipe
	[ "$output" = "exit code 0, and this program lives" ]
}

@test "a call is cancelled by a descriptor, and its sandbox is gone" {
	before=$(processes_of "$AK" | wc -l)
	run other "$SHARED/libcall" -cancel
	[ "$output" = "cancelled: the call was cancelled" ]
	for _ in $(seq 50); do
		[ "$(processes_of "$AK" | wc -l)" -le "$before" ] && return
		sleep 0.1
	done
	processes_of "$AK"
	return 1
}

@test "what the handle's options do not allow is refused" {
	run other "$SHARED/libcall" sandbox_run '{"command":["true"],"memory":"2GiB"}' memory=1GiB
	[ "$output" = "refused: memory: memory = '2 GiB' goes beyond '1 GiB' (the ceiling); only agentkernel.toml and the ceiling given to agentkernel_open() can allow more" ]
	run other "$SHARED/libcall" sandbox_run '{"command":["sh","-c","ls /sys/class/net /proc/net/route; wc -l </proc/net/route"],"network":true}' network=false
	[[ $output == *'"notes":"agentkernel: not granted: network'* ]] || { echo "$output"; return 1; }
	run other "$SHARED/libcall" sandbox_run '{"command":["true"]}' no-such-field=1
	[[ $output == "refused: "*"unknown field 'no-such-field'"* ]]
}

@test "a switch is true or false, and a field without a value or without a grammar is refused" {
	for wrong in home=no network=no clone=yes read-only=maybe memory capabilities=none trace=no environment=clean; do
		run other "$SHARED/libcall" sandbox_run '{"command":["true"]}' "$wrong"
		[[ $status -eq 1 && $output == "refused: the ceiling: "* ]] || { echo "$wrong: $output"; return 1; }
	done
}

@test "a refusal speaks of the program's own calls, and of no server" {
	ak run --name lib --detach --no-network -- sleep 60 >/dev/null
	ak exec lib sh -c 'head -c 200000 /dev/zero >/tmp/large'
	run other "$SHARED/libcall" sandbox_file_read '{"name":"lib","path":"/tmp/large"}'
	[[ $status -eq 1 && $output == *"in parts with offset and length, or all of it with agentkernel_read_file()" ]] || { echo "$output"; return 1; }
	for call in 'sandbox_exec_output {"id":"00000001"}' 'sandbox_exec {"name":"lib","command":["id"],"user":"root"}' \
		'sandbox_network_change {"name":"lib","allow":["example.org"]}'; do
		run other "$SHARED/libcall" "${call%% *}" "${call#* }" profile=restrictive user=1000 network=false
		[[ $status -eq 1 && $output == refused:* && $output != *server* ]] || { echo "$call: $output"; return 1; }
	done
	ak remove -f lib
}

@test "parameters of a command are of their kind, and what has a member of its own is that member" {
	for wrong in read_only=yes pids=12abc pids= pids=0x20 timeout_ms=100 command=x memory no_such=1; do
		run other "$SHARED/libcall" -run "$wrong" true
		[[ $status -eq 1 && $output == refused:* ]] || { echo "$wrong: $output"; return 1; }
	done
	run other "$SHARED/libcall" -run read_only=true sh -c 'touch /file || echo read-only'
	[[ $output == *read-only* ]]
}

@test "wrong calls are refused in words" {
	run other "$SHARED/libcall" no_such_operation
	[ "$output" = "refused: no operation 'no_such_operation'" ]
	run other "$SHARED/libcall" -null
	[ "$output" = "refused: a handle or an operation is missing" ]
	run other "$SHARED/libcall" sandbox_run 'not json'
	[[ $output == "refused: the parameters are not a JSON object: "* ]]
	run other "$SHARED/libcall" sandbox_run '[]'
	[ "$output" = "refused: the parameters are not a JSON object: it is of another kind" ]
	run other "$SHARED/libcall" sandbox_run '{"command":["true"],"comand":1}'
	[[ $output == "refused: sandbox_run has no parameter 'comand'"* ]]
	run as env AGENTKERNEL_PROGRAM=/no/such "$SHARED/libcall" sandbox_list
	[ "$status" -eq 2 ]
}

@test "a program that is killed while [sandbox] init runs for its call leaves no sandbox" {
	printf '[sandbox]\ninit = "sleep 60"\n' >agentkernel.toml
	give agentkernel.toml
	run as env AGENTKERNEL_PROGRAM="$AK" timeout -s KILL 1 "$SHARED/libcall" sandbox_run '{"command":["true"],"files":{"/tmp/x":"y"}}' 3>&-
	for _ in $(seq 50); do
		[ -z "$(ak list --all --quiet)" ] && return
		sleep 0.1
	done
	ak list --all
	return 1
}
