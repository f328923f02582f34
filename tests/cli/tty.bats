#!/usr/bin/env bats
# Terminals: the command has its own; the caller's is restored. In a real one (tmux).
load helpers
bats_require_minimum_version 1.5.0

# This test's own tmux server, running a shell as this round's caller.
start_tmux() {
	TMUX_SOCKET=$W/tmux.sock
	as env -u TMUX tmux -S "$TMUX_SOCKET" -f /dev/null new-session -d -x 100 -y 30 \
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

# Waits until the screen shows the text.
wait_for() {
	for _ in $(seq 100); do
		screen 2>/dev/null | grep -q -- "$1" && return 0
		sleep 0.1
	done
	echo "never saw '$1' in:"
	screen
	return 1
}

@test "the command gets a terminal of its own, of the same size" {
	start_tmux
	type_keys "$AK run --mount $PROBE:/probe:ro /probe tty" Enter
	wait_for "ok /dev/pts/0 1 100x30"
}

@test "a new size of the window reaches the command" {
	start_tmux
	type_keys "$AK run sh -c 'echo started; sleep 1; stty size; echo over'" Enter
	wait_for "^started"
	as tmux -S "$TMUX_SOCKET" resize-window -x 80 -y 20
	wait_for "^20 80"
}

@test "Ctrl-C ends the command and the shell goes on" {
	start_tmux
	type_keys "$AK run sleep 100; echo status \$?" Enter
	sleep 0.7
	type_keys C-c
	wait_for "status 130"
}

@test "Ctrl-C ends the command without a terminal of its own, too" {
	start_tmux
	type_keys "$AK run -T sleep 100 | cat" Enter
	sleep 0.7
	type_keys C-c
	for _ in $(seq 100); do
		[ "$(screen | grep -c 'ready>')" -eq 2 ] && return 0
		sleep 0.1
	done
	screen
	false
}

@test "Ctrl-Z without a terminal of its own stops the command, fg goes on" {
	start_tmux
	type_keys "$AK run -T sh -c 'i=0; while [ \$i -lt 40 ]; do echo tick \$i; i=\$((i+1)); sleep 0.2; done' | cat" Enter
	wait_for "tick 2"
	type_keys C-z
	sleep 0.6
	before=$(screen | grep -c tick)
	sleep 0.8
	[ "$(screen | grep -c tick)" -eq "$before" ]
	type_keys "fg" Enter
	sleep 0.2
	wait_for "tick 1[0-9]"
	type_keys C-c
}

@test "an interactive program is usable and leaves the terminal as it was" {
	start_tmux
	type_keys "stty -a | md5sum >$W/before; $AK run python3 -q; stty -a | md5sum >$W/after; echo compared" Enter
	wait_for ">>>"
	type_keys "print(6*7, __import__('os').isatty(0))" Enter
	wait_for "42 True"
	type_keys C-d
	wait_for "^compared"
	cmp "$W/before" "$W/after"
}

@test "job control works in a shell inside" {
	start_tmux
	type_keys "$AK run bash --norc" Enter
	wait_for "bash-"
	type_keys "sleep 100" Enter
	sleep 0.5
	type_keys C-z
	wait_for "Stopped"
	type_keys "kill %1; exit" Enter
	wait_for "ready>"
}

@test "-t gives a terminal where there is none, and passes the end of input on" {
	# more than a terminal's buffer, without a newline at the end
	count=$({ seq 5000; printf end; } | timeout 20 "$AK" run -t sh -c 'stty -echo; cat' | tr -d '\r' | grep -c .)
	[ "$count" -ge 4000 ]
	output=$(echo 'echo hello; tty' | ak run -t sh)
	[[ "$output" == *hello* && "$output" == */dev/pts/0* ]]
}

@test "all output of a terminal arrives, also at a slow reader" {
	count=$(ak run -t sh -c 'seq 20000' </dev/null | { sleep 1; tr -d '\r' | wc -c; })
	[ "$count" -eq "$(seq 20000 | wc -c)" ]
}

@test "a terminal that nobody reads does not outlast the deadline" {
	run as python3 - "$AK" <<-'PY'
	import os, pty, subprocess, sys, time
	for option in "-t", "-T":
	    master, slave = pty.openpty()
	    start = time.time()
	    p = subprocess.Popen([sys.argv[1], "run", option, "--timeout", "500ms", "yes"],
	        stdin=slave, stdout=slave, stderr=subprocess.DEVNULL)
	    print(p.wait(timeout=15), time.time() - start < 8)
	PY
	says "124 True
124 True"
}

@test "input that nobody reads does not outlast the deadline" {
	start=$(date +%s)
	run bash -c "yes | $AK run -t --timeout 500ms sleep 100 >/dev/null; echo \$?"
	[[ "${lines[-1]}" == 124 ]]
	[ $(($(date +%s) - start)) -lt 10 ]
}

@test "a terminal that goes away ends the command" {
	run as python3 - "$AK" <<-'PY'
	import os, pty, subprocess, sys, time
	for option in "-t", "-T":
	    master, slave = pty.openpty()
	    p = subprocess.Popen([sys.argv[1], "run", option, "yes"], stdin=subprocess.DEVNULL,
	        stdout=slave, stderr=subprocess.DEVNULL)
	    os.close(slave)
	    os.read(master, 100)
	    os.close(master)
	    print(p.wait(timeout=10) != 0)
	PY
	says "True
True"
}

@test "the caller's terminal survives the death of the supervisor's command" {
	start_tmux
	type_keys "$AK run --timeout 300ms sleep 100; stty -a | grep -o -- '-\\?icanon'" Enter
	wait_for "^icanon"
}
