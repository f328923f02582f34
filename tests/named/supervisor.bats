#!/usr/bin/env bats
# The supervisor: who may connect, how it handles invalid input, and what is left when it dies.
load helpers

prepare_file() {
	started s
}

speak() {
	as python3 "$TOP/tests/named/control.py" "$STATE/sandboxes/${NAME:-s}/control.sock" "$@"
}

# Is it still the same process, and does it work?
is_well() {
	[ "$(supervisor s)" = "$1" ] && [ "$(ak exec -T s echo well)" = well ] && is_state s running
}

@test "requests that are none are refused, and the supervisor goes on" {
	pid=$(supervisor s)
	open_before=$(find "/proc/$pid/fd" -mindepth 1 | wc -l)
	for seed in 1 2; do
		run as env SEED=$seed python3 "$TOP/tests/named/control.py" "$STATE/sandboxes/s/control.sock" garbage
		says "done"
	done
	is_well "$pid"
	sleep 0.1
	[ "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)" -le "$open_before" ] # no descriptor is leaked
}

# bats test_tags=once
@test "half a frame is an error in words, or the end of the connection" {
	pid=$(supervisor s)
	run speak half
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 5 ]
	for line in "${lines[@]}"; do
		[[ "$line" == failed\ * || "$line" == closed ]] || { echo "$output"; false; }
	done
	is_well "$pid"
}

# bats test_tags=once
@test "another version is told what to do" {
	run speak version
	[[ "$output" == *"of another version (restart the sandbox)"* ]]
	is_well "$(supervisor s)"
}

# bats test_tags=once
@test "six hundred idle connections: those too many are refused, the others served afterwards" {
	pid=$(supervisor s)
	mkfifo "$W/end"
	speak idle 600 <"$W/end" >"$W/out" 3>&- &
	speaker=$!
	exec 8>"$W/end"
	until_true grep -q refused "$W/out"
	[ "$(cut -d' ' -f2 "$W/out")" -ge 80 ]
	run ak exec -T s true
	fails_with 125 "has 512 clients already"
	cpu=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
	sleep 0.3
	[ $(($(awk '{ print $14 + $15 }' "/proc/$pid/stat") - cpu)) -le 5 ] # it sleeps
	echo >&8
	exec 8>&-
	wait "$speaker"
	until_true is_well "$pid"
}

# bats test_tags=once
@test "fewer descriptors than clients: it neither dies nor spins" {
	ak create few
	as bash -c "ulimit -n 128; exec $AK start few"
	pid=$(supervisor few)
	mkfifo "$W/end"
	NAME=few speak idle 200 <"$W/end" >"$W/out" 3>&- &
	speaker=$!
	exec 8>"$W/end"
	sleep 1
	cpu=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
	sleep 0.5
	spent=$(($(awk '{ print $14 + $15 }' "/proc/$pid/stat") - cpu))
	kill "$speaker" 2>/dev/null || true
	exec 8>&-
	wait "$speaker" || true
	[ "$spent" -le 10 ] || { echo "$spent hundredths of a second in half a second"; false; }
	works() { [ "$(ak exec -T few echo well 2>&1)" = well ]; }
	until_true works
}

# bats test_tags=once
@test "one that asks and never reads is no one else's trouble" {
	pid=$(supervisor s)
	speak unread >"$W/out" 3>&- &
	speaker=$!
	until_true grep -q asked "$W/out"
	for _ in 1 2 3; do
		ak exec -T s true
	done
	wait "$speaker"
	is_well "$pid"
}

@test "nothing moves once pause has answered, whatever was going on" {
	started busy
	# forks, processes that wake each other, and a slow system call
	ak exec -d busy sh -c 'while :; do kill -CONT -1; done'
	ak exec -d busy sh -c 'while :; do /bin/true; sleep 0.001; done'
	ak exec -d busy sh -c 'while :; do dd if=/dev/zero of=/tmp/grown bs=32M count=1 2>/dev/null; done'
	grown=$STATE/sandboxes/busy/disk.0/upper/tmp/grown
	until_true test -s "$grown"
	for round in $(seq 30); do
		ak pause busy
		before=$(stat -c %s "$grown")
		sleep 0.01
		[ "$(stat -c %s "$grown")" = "$before" ]
		ak resume busy
	done
	ak remove -f busy
}

@test "what froze it and died has not frozen it for ever" {
	ak exec -d s sh -c 'i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo $i >/tmp/count; sleep 0.02; done'
	run speak freeze
	says ok
	count=$STATE/sandboxes/s/disk.0/upper/tmp/count
	first=$(cat "$count")
	moves_on() { [ "$(cat "$count")" != "$first" ]; }
	until_true moves_on
	is_well "$(supervisor s)"
}

@test "the socket listens to its owner and to root alone" {
	only_root
	sandbox=$STATE/sandboxes/s
	# modes that let others in, as if set by mistake
	chmod 711 "$STATE" "$STATE/sandboxes" "$sandbox" "$SHARED/home"
	chmod 777 "$sandbox/control.sock"
	mkdir "$W/py"
	cp "$TOP/tests/named/control.py" "$W/py/"
	chmod -R a+rX "$W"
	run setpriv --reuid 54321 --regid 54321 --clear-groups /usr/bin/python3 "$W/py/control.py" "$sandbox/control.sock" version
	chmod 700 "$STATE" "$STATE/sandboxes" "$sandbox" "$sandbox/control.sock"
	says closed
	run speak version # control: the owner gets an answer to the same message
	[[ "$output" == failed* ]]
}

@test "nobody but the owner can see a sandbox's files" {
	[ "$(find "$STATE/sandboxes/s" -maxdepth 1 -perm /077 | wc -l)" -eq 0 ]
	[ "$(stat -c %a "$STATE/sandboxes")" = 700 ]
}

@test "kill -9 of the supervisor ends everything inside; list says so; start works" {
	started victim
	ak exec -d victim sleep "79.$$"
	mapfile -t groups < <(groups_of victim)
	init=$(field victim init)
	kill -9 "$(supervisor victim)"
	until_true is_state victim "stopped (supervisor died)"
	run ak list --all
	[[ "$output" == *"stopped (supervisor died)"* ]]
	dead() { [ ! -e "/proc/$init/exe" ] && ! pgrep -f "^sleep 79.$$\$"; }
	until_true dead
	run ak exec victim true
	fails_with 125 "sandbox 'victim' is not running (agentkernel start victim)"
	run ak gc --json
	[[ "$output" == *'"dead":1'* ]]
	gone "${groups[@]}" "$STATE/sandboxes/victim/control.sock"
	is_state victim "stopped (supervisor died)"
	ak start victim
	[ "$(ak exec victim echo back)" = back ]
}

@test "kill -9 of the supervisor of a paused sandbox leaves nothing frozen behind" {
	for way in gc start remove; do
		started frozen
		ak exec -d frozen sleep "81.$$"
		mapfile -t groups < <(groups_of frozen)
		init=$(field frozen init)
		ak pause frozen
		kill -9 "$(supervisor frozen)"
		until_true is_state frozen "stopped (supervisor died)"
		case $way in
		gc) ak gc >/dev/null ;;
		start) ak start frozen ;;
		esac
		[ "$way" = start ] || ak remove frozen
		dead() { [ ! -e "/proc/$init/exe" ] && ! pgrep -f "^sleep 81.$$\$"; }
		until_true dead
		gone "${groups[@]}"
		ak remove -f frozen
	done
}

@test "kill -9 of init: the supervisor takes everything back and says why" {
	started orphan
	ak exec -d orphan sleep 80
	mapfile -t groups < <(groups_of orphan)
	pid=$(supervisor orphan)
	kill -9 "$(field orphan init)"
	until_true is_state orphan "stopped (init died)"
	ended() { [ ! -e "/proc/$pid/exe" ]; }
	until_true ended
	gone "${groups[@]}" "$STATE/sandboxes/orphan/control.sock"
	ak start orphan
	ak exec orphan true
}

@test "a command whose sandbox has ended says so" {
	local who client
	for who in supervisor init; do
		started "ended-$who"
		as "$AK" exec -T "ended-$who" sleep 79 3>&- 2>"$W/words" &
		client=$!
		running() { ak ps "ended-$who" | grep -q 'sleep 79'; }
		until_true running
		kill -9 "$(field "ended-$who" "$who")"
		wait "$client" && status=0 || status=$?
		[ "$status" -eq 137 ]
		[ "$(cat "$W/words")" = "agentkernel: the sandbox has ended, and the command with it" ]
		ak remove -f "ended-$who"
	done
}

@test "SIGTERM to the supervisor stops the sandbox in order" {
	started polite
	ak exec -d polite sh -c 'trap "echo asked >/tmp/asked; exit" TERM; while :; do sleep 0.05; done'
	sleep 0.2
	kill "$(supervisor polite)"
	until_true is_state polite stopped
	ak start polite
	run ak exec polite cat /tmp/asked
	says asked
}

@test "the supervisor holds nothing of whoever started it" {
	exec 7</etc/passwd 9>"$W/nine"
	ak create clean
	as "$AK" start clean
	exec 7<&- 9>&-
	pid=$(supervisor clean)
	run bash -c "ls -l /proc/$pid/fd | grep -c -E '/etc/passwd|nine|bats'"
	says 0
	[ "$(readlink "/proc/$pid/cwd")" = / ]
	[ "$(ps -o pid= -o sid= -p "$pid" | awk '{ print ($1 == $2) }')" = 1 ]
}

# bats test_tags=once
@test "changes from many sides at once leave a policy that can be read" {
	started changed
	as bash -c "for i in \$(seq 30); do $AK update changed --memory \$((512 + i))M --pids \$((100 + i)) & done; wait" >"$W/out" 2>&1 || true
	[ ! -s "$W/out" ] || { head -n 3 "$W/out"; false; }
	ak info changed >/dev/null
	ak restart changed
	ak exec changed true
}
