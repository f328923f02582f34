#!/usr/bin/env bats
# Words and options of docker, podman and shells.

load helpers
bats_require_minimum_version 1.5.0

@test "docker's -it, -i -t and --rm mean what they mean there, and never an image 't'" {
	run -0 ak run -it echo there
	[[ "$output" == *there* ]]
	for words in "-it" "-ti" "-i -t" "-i --tty" "--rm -it" "--interactive --tty"; do
		# shellcheck disable=SC2086 # words
		run as env -u AGENTKERNEL_IMAGE "$AK" run --pull never $words debian:12 bash
		[ "$status" -eq 125 ]
		[[ "$output" == *"image 'debian:12': not in the store"* ]] || { echo "$words: $output"; false; }
	done
	run as env -u AGENTKERNEL_IMAGE "$AK" run --pull never --rm somebody/thing true
	[[ "$output" == *"image 'somebody/thing'"* ]]
	run ak run debian:12 bash
	[ "$status" -eq 127 ]
	[[ "$output" == *"agentkernel run -i debian:12 COMMAND"* ]]
}

@test "run -d keeps the sandbox, prints its name, and the command runs on" {
	name=$(ak run -d sh -c 'echo begun; sleep 60')
	[[ "$name" == run-* ]]
	until_true() { for _ in $(seq 50); do "$@" && return; sleep 0.1; done; return 1; }
	begun() { [ "$(ak logs "$name")" = begun ]; }
	until_true begun
	ak rm -f "$name"
	run ak run -d --rm true
	[ "$status" -eq 125 ]
	[[ "$output" == *"--rm keeps nothing, and --detach keeps the sandbox"* ]]
}

@test "exec -it works, and exec with a name alone is a shell" {
	ak create shelly
	ak start shelly
	run -0 ak exec -it shelly echo there
	[[ "$output" == *there* ]]
	run ak exec shelly <<<'echo "in $HOSTNAME"; exit 4'
	[ "$status" -eq 4 ]
	[[ "$output" == *"in shelly"* ]]
	ak remove -f shelly
}

@test "words of others for our commands are understood, or answered with what to do" {
	ak create known
	run -0 ak ls --all
	[[ "$output" == *known* ]]
	run -0 ak inspect known
	[[ "$output" == *known* ]]
	run -0 ak images
	run -0 ak image ls
	run -0 ak ps
	run -0 ak sandbox rm known
	for word in rename login compose; do
		run ak "$word" some thing
		[ "$status" -eq 125 ]
		[[ "$output" == *"unknown command '$word': "*"'"* ]]
	done
}

@test "no suggestion ends or deletes anything, and none quotes arguments as a command" {
	for word in stpo sto remov kil prun restrat gcc; do
		run ak "$word" precious
		[ "$status" -eq 125 ]
		[[ "$output" != *"did you mean 'stop'"* && "$output" != *"'remove'"* && "$output" != *"'kill'"* && "$output" != *prune* && "$output" != *"'gc'"* ]]
		[[ "$output" != *precious* ]]
	done
	run ak lsit
	[[ "$output" == *"did you mean 'list'"* ]]
}

@test "--workspace takes the next word only if that is clearly a directory" {
	mkdir -p "$W/here/sh"
	cd "$W/here"
	chmod -R a+rwx "$W/here"
	[ "$(ak run --workspace sh -c pwd)" = "$W/here" ]
	[ "$(ak run -W sh -c pwd)" = "$W/here" ]
	[ "$(ak run --workspace ./sh sh -c pwd)" = "$W/here/sh" ]
	[ "$(ak run -W sh/ sh -c pwd)" = "$W/here/sh" ]
	[ "$(ak run --workspace=sh sh -c pwd)" = "$W/here/sh" ]
	[ "$(ak run --workspace "$W/here/sh" sh -c pwd)" = "$W/here/sh" ]
}

@test "a command that fails for want of this directory is told that it is not visible" {
	cd "$W"
	echo 'print(1)' >script.py
	run ak run python3 script.py
	[ "$status" -ne 0 ]
	[[ "$output" == *"'script.py' is in this directory, which is not visible inside (add --workspace"* ]]
	rm script.py
	run ak run false
	[[ "$output" != *workspace* ]]
	echo '{}' >package.json
	run ak run false
	[[ "$output" == *"the project in this directory is not visible inside (add --workspace"* ]]
	run ak run --workspace false
	[[ "$output" != *workspace* ]]
	run ak run true
	[ -z "$output" ]
}

@test "run --json prints one object whatever happens" {
	for words in "nosuch" "--memroy 1 true" "--image /etc/passwd true" "--memory 1 true" "/etc/passwd" "sh -c exit\ 3"; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr ak run --json $words
		[ "$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["exit_code"])' "$output")" = "$status" ] || { echo "$words: $output"; false; }
	done
	ak create jj
	run --separate-stderr ak exec --json jj true
	[ "$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["error"])' "$output")" = "sandbox 'jj' is not running (agentkernel start jj)" ] || { echo "$output"; false; }
	ak remove jj
}

@test "docker's -p 8080:80 is told what publishes a port here" {
	run ak run -p 8080:80 true
	[ "$status" -eq 125 ]
	[[ "$output" == *"a port is published with -P 8080:80"* ]]
}
