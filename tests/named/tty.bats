#!/usr/bin/env bats
# Terminals of named sandboxes, in a real one (tmux): exec -t, and attach, detaching and attaching
# again.
load helpers

prepare_file() {
	started t --mount "$PROBE:/probe:ro"
}

# This test's own tmux server, running a shell as this round's caller.
start_tmux() {
	TMUX_SOCKET=$W/tmux.sock
	as env -u TMUX AK="$AK" tmux -S "$TMUX_SOCKET" -f /dev/null new-session -d -x 100 -y 30 \
		"env PS1='ready> ' ENV= sh"
	wait_for "ready>"
}

teardown() {
	[ -z "${TMUX_SOCKET:-}" ] || as tmux -S "$TMUX_SOCKET" kill-server || true
}

type_keys() {
	as tmux -S "$TMUX_SOCKET" send-keys "$@"
}

screen() {
	as tmux -S "$TMUX_SOCKET" capture-pane -p
}

wait_for() {
	for _ in $(seq 200); do
		screen 2>/dev/null | grep -q -- "$1" && return 0
		sleep 0.05
	done
	echo "never saw '$1' in:"
	screen
	return 1
}

@test "a command at a terminal has its own, of the same size, and sees it change" {
	start_tmux
	type_keys "$AK exec t /probe tty" Enter
	wait_for "ok /dev/pts/[0-9]* 1 100x30"
	type_keys "clear; $AK exec t sh -c 'echo star''ted; sleep 1; stty size; echo over'" Enter
	wait_for "^started"
	as tmux -S "$TMUX_SOCKET" resize-window -x 80 -y 20
	wait_for "^20 80"
}

@test "Ctrl-C ends the command, with and without a terminal of its own, and the shell goes on" {
	start_tmux
	type_keys "$AK exec t sh -c 'echo u''p; exec sleep 100'; echo status \$?" Enter
	wait_for "^up"
	type_keys C-c
	wait_for "status 130"
	type_keys "clear; $AK exec -T t sh -c 'echo u''p; exec sleep 100'; echo status \$?" Enter
	wait_for "^up"
	type_keys C-c
	wait_for "status 130"
}

# bats test_tags=once
@test "the terminal is left as it was" {
	start_tmux
	type_keys "stty -a | md5sum >$W/before; $AK exec t sh -c 'stty raw -echo'; stty -a | md5sum >$W/after; echo com''pared" Enter
	wait_for "^compared"
	cmp "$W/before" "$W/after"
}

@test "attach is a login shell that can be left and re-entered, with all its state" {
	start_tmux
	type_keys "$AK attach t" Enter
	wait_for '[#$]'
	type_keys "X=kept-\$((40 + 2)); cd /tmp; echo made" Enter
	wait_for "^made"
	type_keys C-]
	wait_for "left 't' running"
	ak ps t | grep -q running
	type_keys "clear; $AK attach t" Enter
	sleep 0.3
	type_keys "echo \"\$X in \$PWD\"" Enter
	wait_for "kept-42 in /tmp"
	type_keys "exit 5" Enter
	wait_for "ready>"
	type_keys "echo status \$?" Enter
	wait_for "status 5"
}

# bats test_tags=once
@test "a second attach takes the terminal over, and the first says so" {
	start_tmux
	type_keys "$AK attach t; echo first is ov''er" Enter
	wait_for '[#$] *$'
	type_keys "X=mine; echo ma''de" Enter
	wait_for "^made"
	as tmux -S "$TMUX_SOCKET" new-window "env PS1='second> ' ENV= sh"
	wait_for "second>"
	type_keys "$AK attach t" Enter
	sleep 0.3
	type_keys "echo still \$X" Enter
	wait_for "^still mine"
	as tmux -S "$TMUX_SOCKET" select-window -t 0
	wait_for "first is over"
	as tmux -S "$TMUX_SOCKET" select-window -t 1
	type_keys "exit" Enter
	wait_for "second>"
}

@test "a client that is killed at the terminal leaves the shell running" {
	start_tmux
	type_keys "$AK attach t" Enter
	wait_for '[#$] *$'
	type_keys "X=survived; echo ma''de" Enter
	wait_for "^made"
	kill -9 "$(pgrep -f "^$AK attach t")"
	wait_for "ready>"
	type_keys "stty sane; clear; $AK attach t" C-j
	sleep 0.4
	type_keys "echo \$X" Enter
	wait_for "^survived"
	type_keys "exit" Enter
}

# bats test_tags=once
@test "attach to the terminal of a detached command; without one it is refused" {
	start_tmux
	id=$(ak exec -d -t t sh -c 'read line; echo "read <$line>"; sleep 5')
	type_keys "$AK attach t $id" Enter
	sleep 0.3
	type_keys "hello" Enter
	wait_for "read <hello>"
	other=$(ak exec -d t sleep 50)
	type_keys C-] "" Enter
	type_keys "clear; $AK attach t $other" Enter
	wait_for "no such terminal in sandbox 't'"
	ak kill t "$other"
	run ak attach t </dev/null
	fails_with 125 "attach needs a terminal"
}

# bats test_tags=once
@test "all output of a terminal arrives" {
	count=$(ak exec -t t sh -c 'seq 20000' </dev/null | tr -d '\r' | wc -c)
	[ "$count" -eq "$(seq 20000 | wc -c)" ]
}

@test "a terminal that goes away ends the command" {
	run as python3 - "$AK" <<-'PY'
	import os, pty, subprocess, sys
	for option in "-t", "-T":
	    master, slave = pty.openpty()
	    p = subprocess.Popen([sys.argv[1], "exec", option, "t", "yes"], stdin=subprocess.DEVNULL,
	        stdout=slave, stderr=subprocess.DEVNULL)
	    os.close(slave)
	    os.read(master, 100)
	    os.close(master)
	    print(p.wait(timeout=10) != 0)
	PY
	says "True
True"
	gone_all() { ! ak ps t | grep -q running.*yes; }
	until_true gone_all
}
