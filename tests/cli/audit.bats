#!/usr/bin/env bats
# The audit command, on logs written by hand. tests/unit checks that events become such lines.
# shellcheck disable=SC2154
load helpers
bats_require_minimum_version 1.5.0

setup() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	mkdir -m 700 "$W/state"
	[ "${AS:-root}" != user ] || chown -R 12345:12345 "$W"
	cd "$W" || return 1
	LOG=$W/state/audit.jsonl
}

audit() {
	as env AGENTKERNEL_HOME="$W/state" "$AK" audit "$@"
}

# Ends the program itself, not only the shell that waits for it.
stop_follower() {
	pkill -P "$follower"
	wait "$follower" || true
}

# event TIME SANDBOX TYPE SUBJECT [RESULT]: one line
event() {
	printf '{"time":"%s","uid":4242,"pid":7,"program":"bash","sandbox":"%s","type":"%s",%s,"result":"%s"}\n' \
		"$1" "$2" "$3" "$4" "${5:-ok}"
}

some_events() {
	event 2025-03-01T12:00:00.000Z otter create '"what":"image host"' >"$LOG.1"
	event 2025-03-01T12:30:00.250Z otter exec '"argv":["sh","-c","echo $HOME"]'
	event 2025-03-02T00:00:00.000Z lynx exec '"argv":["true"]' 'no such command'
	event "$(date -u -d '5 minutes ago' +%Y-%m-%dT%H:%M:%S.000Z)" otter network '"what":"allow a.example"'
} >>"$LOG"

@test "audit: nothing yet" {
	run audit
	says "agentkernel: nothing has happened yet"
	run audit --json
	says ""
	[ "$status" -eq 0 ]
}

@test "audit: a line for each event, the older log first" {
	some_events
	run audit
	succeeded=$status
	[ "$succeeded" -eq 0 ]
	[ "${#lines[@]}" -eq 4 ]
	[ "${lines[0]}" = "2025-03-01T12:00:00.000Z  4242 bash[7]          otter         create      image host  ok" ]
	[ "${lines[1]}" = "2025-03-01T12:30:00.250Z  4242 bash[7]          otter         exec        sh -c 'echo \$HOME'  ok" ]
	[ "${lines[2]}" = "2025-03-02T00:00:00.000Z  4242 bash[7]          lynx          exec        true  no such command" ]
	sed -i 's/"uid":4242/"uid":0/' "$LOG" "$LOG.1"
	run audit
	[[ "${lines[0]}" == *"  root bash[7] "* ]]
}

@test "audit: by sandbox, type and time" {
	some_events
	run audit --sandbox lynx
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" == *lynx* ]]
	run audit --type=exec
	[ "${#lines[@]}" -eq 2 ]
	run audit --type exec --sandbox otter
	[ "${#lines[@]}" -eq 1 ]
	run audit --since 2025-03-01T12:30:00.250Z
	[ "${#lines[@]}" -eq 3 ]
	run audit --since 2025-03-02
	[ "${#lines[@]}" -eq 2 ]
	run audit --since 2025-03-02T01:00:00+01:00
	[ "${#lines[@]}" -eq 2 ]
	run audit --since 10m
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" == *"allow a.example"* ]]
	run audit --since 1m
	says "agentkernel: no such event"
}

@test "audit: what cannot be understood is refused" {
	run audit --type exce
	fails_with 125 "--type: no event is a 'exce', did you mean 'exec'?"
	run audit --since yesterday
	fails_with 125 "--since: invalid time 'yesterday' (10m, 2025-03-01, 2025-03-01T12:30:00Z)"
	run audit --since 2025-02-29
	fails_with 125 "--since: invalid time '2025-02-29'"
	run audit otter
	fails_with 125 "unexpected argument 'otter'"
}

@test "audit --json: the lines as they are" {
	some_events
	run audit --json
	says "$(cat "$LOG.1" "$LOG")"
	run audit --json --type create
	says "$(cat "$LOG.1")"
}

@test "audit: damaged lines are shown and counted, and hurt nobody" {
	some_events
	{
		printf '{"time":"2025-03-01T12:30:00.250Z","uid":42\n\n\xff\xfe\n'
		head -c 200000 /dev/zero | tr '\0' x
		echo
		head -c 70000 /dev/zero
		echo
		head -c 65536 /dev/zero | tr '\0' x # the rest of a long line is not a line
		event 2025-03-03T00:00:00.000Z otter stop '"what":"SIGTERM"'
		event 2025-03-03T00:00:00.000Z otter stop '"what":"SIGTERM"'
		printf '{"time":"2025-03-01T12:30:00'
	} >>"$LOG"
	run audit
	[ "$status" -eq 0 ]
	[ "$(grep -c '^(damaged line)$' <<<"$output")" -eq 7 ]
	[[ "$output" == *"agentkernel: 7 damaged lines in '$LOG'"* ]]
	[ "$(grep -c '^2' <<<"$output")" -eq 5 ]
	run --separate-stderr audit --json
	[ "${#lines[@]}" -eq 5 ]
	[[ "$stderr" == *"7 damaged lines"* ]]
	python3 -c 'import json,sys; [json.loads(x) for x in sys.argv[1].splitlines()]' "$output"
	run --separate-stderr audit --sandbox lynx
	[ "${#lines[@]}" -eq 1 ]
}

@test "audit: what a command was called cannot steer a terminal" {
	event 2025-03-01T12:30:00.250Z otter exec '"argv":["x\u001b[2J","\u0007","\u009b2J"]' >"$LOG"
	run audit
	[[ "$output" == *"'x?[2J' ? ??2J  ok" ]] || { echo "$output"; return 1; }
	! grep -q $'[\x1b\x07\x9b]' <<<"$output"
	# the writer escapes it: an unescaped one is not from the writer
	event 2025-03-01T12:30:00.250Z otter exec '"argv":["'$'\xc2\x9b''2J"]' >"$LOG"
	run audit
	[[ "$output" == "(damaged line)"* ]]
}

@test "audit -f: events as they happen, through rotation" {
	some_events
	audit -f >"$W/out" 2>"$W/err" 3>&- &
	follower=$!
	sleep 0.5
	event 2025-03-04T00:00:00.000Z otter start '"what":"one"' >>"$LOG"
	for _ in $(seq 50); do grep -q one "$W/out" && break; sleep 0.1; done
	event 2025-03-04T00:00:01.000Z otter start '"what":"two"' >>"$LOG"
	mv "$LOG" "$LOG.1"
	event 2025-03-04T00:00:02.000Z otter start '"what":"three"' >"$LOG"
	for _ in $(seq 50); do grep -q three "$W/out" && break; sleep 0.1; done
	stop_follower
	[ "$(awk '{ print $6 }' "$W/out" | tr '\n' ' ')" = "one two three " ] || { cat "$W/out"; return 1; }
}

@test "audit -f --since: what was before comes first; and it ends with its reader" {
	some_events
	audit -f --since 2025-03-02 >"$W/out" 2>"$W/err" 3>&- &
	follower=$!
	for _ in $(seq 50); do [ "$(wc -l <"$W/out")" -eq 2 ] && break; sleep 0.1; done
	event "$(date -u +%Y-%m-%dT%H:%M:%S.000Z)" otter start '"what":"one"' >>"$LOG"
	for _ in $(seq 50); do grep -q one "$W/out" && break; sleep 0.1; done
	stop_follower
	[ "$(wc -l <"$W/out")" -eq 3 ]
	run timeout 10 bash -c "$(declare -f as); export AS=$AS SHARED=$SHARED; as env AGENTKERNEL_HOME='$W/state' '$AK' audit -f --since 2025-03-01 | head -1"
	[ "$status" -eq 0 ]
}

@test "audit: in help, the man page and completion" {
	run ak help
	[[ "$output" == *"audit"* ]]
	run ak completion --words au
	[[ "$output" == *"audit"* ]]
	run ak help --man
	[[ "$output" == *"show who did what to which sandbox"* ]]
}
