#!/usr/bin/env bats
# The titles of our processes in ps: what they are and for which sandbox, without the command line
# that started them.

load helpers

# called PID NAME TITLE: its name and command line in ps
called() {
	[ "$(ps -o comm= -p "$1")" = "$2" ] || { echo "name: $(ps -o comm= -p "$1")"; return 1; }
	[ "$(ps -ww -o args= -p "$1" | sed 's/ *$//')" = "$3" ] || { echo "title: $(ps -ww -o args= -p "$1")"; return 1; }
}

# one_called TITLE: the pid of the only process of this file's program or its helpers with that
# title
one_called() {
	processes_of "$AK*" | sed 's/ *$//' | grep -x "[0-9]* $1" | cut -d' ' -f1
}

@test "a supervisor, its init and its gate are called so" {
	started titled --network
	ak exec titled sh -c 'getent hosts x.test || true'
	called "$(supervisor titled)" ak-sup:titled "agentkernel: supervisor of titled"
	called "$(field titled init)" ak-init:titled "agentkernel: init of titled"
	called "$(one_called 'agentkernel: gate of titled')" ak-gate:titled "agentkernel: gate of titled"
	ak remove -f titled
}

@test "a long name is there in full, however short the command line was" {
	name=a$(printf '1234567890%.0s' $(seq 6))
	ak create "$name" >/dev/null
	ln -s "$AK" "$SHARED/k"
	as "$SHARED/k" start "$name" 3>&-
	called "$(supervisor "$name")" ak-sup:a1234567 "agentkernel: supervisor of $name"
	called "$(field "$name" init)" ak-init:a123456 "agentkernel: init of $name"
	ak remove -f "$name"
}

@test "a secret of the command line is in no title but that of the command itself" {
	client run --name secretive -e "TOKEN=hush-$$" sleep "61.$$"
	runs() { [ -n "$(supervisor secretive)" ] && pgrep -f "^sleep 61.$$\$"; }
	until_true runs
	[ "$(ak exec secretive sh -c 'echo $TOKEN')" = "hush-$$" ]
	run processes_of "$AK*"
	[[ "$output" == *"supervisor of secretive"* ]]
	[ "$(grep -c "hush-$$" <<<"$output")" -eq 1 ] # the client's own, as typed
	ak remove -f secretive
	wait "$CLIENT" || true
}

# The control is part of it: pid 1 has a title.
@test "the title of pid 1 tells what is inside nothing of the caller" {
	mkdir "$W/a-host-directory"
	run -0 ak run -e "TOKEN=hush-$$" -v "$W/a-host-directory:/d" sh -c 'tr "\0" " " </proc/1/cmdline; cat /proc/1/comm'
	[[ "$output" =~ ^"agentkernel: init"" "*ak-init$ ]] || { echo "$output"; false; }
	started quiet -v "$W/a-host-directory:/d"
	run -0 ak exec quiet sh -c 'tr "\0" " " </proc/1/cmdline; cat /proc/1/comm'
	[[ "$output" =~ ^"agentkernel: init of quiet"" "*ak-init:quiet$ ]] || { echo "$output"; false; }
	ak remove -f quiet
}

@test "a daemon and what it keeps ready are called so" {
	ak daemon start
	ak run true # the first run makes the daemon keep such sandboxes ready
	has_warm() { [ -n "$(one_called 'agentkernel: warm sandbox')" ]; }
	until_true has_warm
	called "$(one_called 'agentkernel: daemon')" ak-daemon "agentkernel: daemon"
	called "$(one_called 'agentkernel: warm sandbox' | head -n 1)" ak-warm "agentkernel: warm sandbox"
	ak daemon stop
}

# serving COMMAND...: a server in the background with a pipe to it, which descriptor 4 keeps open
serving() {
	mkfifo "$W/in"
	give "$W/in"
	as "$AK" "$@" <"$W/in" >"$W/out" 2>"$W/errors" 3>&- &
	exec 4>"$W/in"
}

@test "servers and their workers are called so, and keep no option to themselves" {
	serving mcp server -e "TOKEN=hush-$$"
	printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
		'{"jsonrpc":"2.0","method":"notifications/initialized"}' \
		'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sandbox_run","arguments":{"command":["sleep","60"],"image":"host"}}}' >&4
	working() { [ -n "$(one_called 'agentkernel: worker (sandbox_run)')" ]; }
	until_true working
	called "$(one_called 'agentkernel: worker (sandbox_run)' | head -n 1)" ak:sandbox_run "agentkernel: worker (sandbox_run)"
	[ -n "$(one_called 'agentkernel: init')" ]
	called "$(one_called 'agentkernel: MCP server')" ak-mcp "agentkernel: MCP server"
	run processes_of "$AK*"
	[[ "$output" != *"hush-$$"* ]]
	exec 4>&-
	rm "$W/in"
	serving serve --listen "unix:$W/socket"
	server() { [ -n "$(one_called "agentkernel: HTTP server on unix:$W/socket")" ]; }
	until_true server
	server=$(one_called "agentkernel: HTTP server on unix:$W/socket")
	[ "$(ps -o comm= -p "$server")" = ak-serve:unix:/ ]
	kill "$server"
	exec 4>&-
}
