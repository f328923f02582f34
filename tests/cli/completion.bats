#!/usr/bin/env bats
# What completes where, according to the program and to the shells themselves.

load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	load_shared
	mkdir "$SHARED/bin"
	ln -s "$AK" "$SHARED/bin/agentkernel"
	ak create otter
}

teardown_file() {
	ak remove -f otter
	rm -rf "$SHARED"
}

words() {
	ak completion --words "$@" | tr '\n' ' '
}

# What Tab completes in an interactive bash.
bash_completes() {
	as env PATH="$SHARED/bin:$PATH" bash -c '
		source <(agentkernel completion bash)
		COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($1) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_agentkernel
		printf "%s " "${COMPREPLY[@]}"' - "$1"
}

@test "each place completes what belongs there, and nothing else" {
	[ "$(words run --prof)" = "--profile " ]
	[ "$(words run --profile '')" = "restrictive moderate permissive " ]
	[ "$(words run --profile=p)" = "--profile=permissive " ]
	[ "$(words run -m c)" = "claude codex " ]
	[ "$(words run -i h)" = "host " ]
	[ "$(words exec o)" = "otter " ]
	[ "$(words stop '')" = "otter " ]
	[ "$(words sandbox stop '')" = "otter " ]
	[ "$(words exec otter '')" = ":commands " ]
	[ "$(words run '')" = ":commands " ]
	[ "$(words run ls '')" = ":files " ]
	[ "$(words run --memory '')" = "" ]
	[ "$(words run --workspace=)" = ":dirs " ]
	[ "$(words image load '')" = ":files " ]
	[ "$(words checkpoint re)" = "restore remove " ]
	[ "$(words plugin install m)" = "mcp " ]
	[[ "$(words st)" == *"start "*"stop "* ]]
	[ "$(words nonsense '')" = "" ]
}

@test "bash completes sandboxes, options, values, files and programs" {
	[ "$(bash_completes 'agentkernel ru')" = "run " ]
	[ "$(bash_completes 'agentkernel run --mem')" = "--memory " ]
	[ "$(bash_completes 'agentkernel exec o')" = "otter " ]
	[ "$(bash_completes 'agentkernel run --profile=mod')" = "moderate " ]
	touch "$W/a-file" && cd "$W"
	[ "$(bash_completes 'agentkernel image load a-f')" = "a-file " ]
	[[ "$(bash_completes 'agentkernel run set')" == *setsid* ]]
}

@test "zsh completes the same" {
	command -v zsh >/dev/null || skip "no zsh"
	run as env PATH="$SHARED/bin:$PATH" zsh -f -c '
		compdef() { : }
		compadd() { print -r -- $2 } # outside of a widget
		_files() { print -r -- files }
		source <(agentkernel completion zsh)
		words=(agentkernel exec o); CURRENT=3; _agentkernel
		words=(agentkernel run --profile mo); CURRENT=4; _agentkernel
		words=(agentkernel image load ""); CURRENT=4; _agentkernel'
	[ "$output" = $'otter\nmoderate\nfiles' ] || { echo "$output"; false; }
}

@test "fish completes the same" {
	command -v fish >/dev/null || skip "no fish"
	run as env PATH="$SHARED/bin:$PATH" XDG_CONFIG_HOME="$W" XDG_DATA_HOME="$W" fish -c \
		'agentkernel completion fish | source; complete -C "agentkernel exec o"; complete -C "agentkernel run --profile mo"; complete -C "agentkernel checkpoint res"'
	[ "${lines[0]}" = otter ]
	[ "${lines[1]}" = moderate ]
	[ "${lines[2]}" = restore ]
}
