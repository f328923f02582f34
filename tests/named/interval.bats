#!/usr/bin/env bats
# Checkpoints at an interval: made by the supervisor, bounded in number, and never instead of what a
# person has made.
load helpers

# made_by NAME WHO: the ids of a sandbox's checkpoints, oldest first
made_by() {
	ak checkpoint list "$1" --json 2>/dev/null | python3 -c 'import json, sys
for c in json.load(sys.stdin):
    if c["automatic"] == (sys.argv[1] == "interval"): print(c["id"])' "$2"
}
count() { made_by "$1" interval | wc -l; }
# newest NAME: of those that the interval made
newest() { made_by "$1" interval | tail -n 1; }
is_newer() { [ "$(newest "$1")" != "$2" ]; }
# change NAME: changes a file, and waits for the checkpoint of it
change() {
	local before
	before=$(newest "$1")
	ak exec "$1" sh -c 'echo x >>/tmp/log'
	until_true is_newer "$1" "$before"
}

@test "an interval makes checkpoints, keeps so many of its own, and none of a person's goes" {
	started often
	ak exec often sh -c 'echo old >/tmp/log'
	mine=$(ak checkpoint create often --comment mine)
	run ak checkpoint create often --every 5s --keep 2
	[ "$status" -eq 0 ]
	[[ "$output" == *"sandbox 'often' has a checkpoint every 5s while it runs"*"the last 2 of these are kept"* ]]
	[ "$(count often)" -eq 1 ] # one at once
	first=$(newest often)
	change often
	change often
	[ "$(count often)" -eq 2 ]
	[[ "$(made_by often interval)" != *"$first"* ]]
	[ "$(made_by often command)" = "$mine" ]
	ak info often | grep -q '^checkpoints  *every 5s, the last 2 are kept$'
	run ak checkpoint list often
	[[ "$output" == *interval* && "$output" == *"command   mine"* && "$output" == *"every 5s"* ]] || { echo "$output"; false; }
	# it is one like any other
	ak checkpoint restore often "$(newest often)"
	run ak exec often cat /tmp/log
	says "old
x
x"
	run ak checkpoint create often --every off
	[[ "$output" == *"no more checkpoints by interval"* ]]
	! ak info often | grep -q '^checkpoints'
	before=$(made_by often interval)
	ak exec often sh -c 'echo later >/tmp/later'
	sleep 7
	[ "$(made_by often interval)" = "$before" ] # none is made, none is removed
	ak remove -f often
}

@test "an interval in which nothing has changed makes no checkpoint, and freezes nothing" {
	started idle
	ak exec idle sh -c 'echo x >/tmp/x'
	sleep 1
	ak checkpoint create idle --every 5s --keep 3 2>/dev/null
	frozen=$(ak logs --system idle | grep -c frozen)
	sleep 12
	[ "$(count idle)" -eq 1 ]
	[ "$(ak logs --system idle | grep -c frozen)" -eq "$frozen" ]
	# unless the checkpoint with that state is gone
	ak checkpoint remove "$(newest idle)"
	is_made() { [ "$(count idle)" -eq 1 ]; }
	until_true is_made
	ak remove -f idle
}

@test "a restart resumes an interval, and a stop ends it for that long" {
	started resumed
	ak checkpoint create resumed --every 5s 2>/dev/null
	ak stop resumed
	id=$(newest resumed)
	sleep 6
	[ "$(newest resumed)" = "$id" ]
	ak start resumed
	change resumed
	# a supervisor that is killed takes nothing with it
	kill -9 "$(supervisor resumed)"
	ak start resumed
	ak info resumed --json | grep -q '"checkpoint_every_ms":5000,"checkpoint_keep":10'
	change resumed
	[ "$(ak list --all | grep -c resumed)" -eq 1 ]
	# a fork has none
	ak fork resumed resumed-2
	! ak info resumed-2 | grep -q '^checkpoints'
	ak remove -f resumed
	ak remove -f resumed-2
}

# bats test_tags=once
@test "an interval's checkpoint that fails is told of, and the next one that does not ends that" {
	started failing
	ak checkpoint create failing --every 5s 2>/dev/null
	mv "$STATE/layers" "$W/layers"
	touch "$STATE/layers"
	has_failed() { ak info failing | grep -q '^checkpoints .*; the last one failed: .*layers'; }
	until_true has_failed
	ak info failing --json | grep -q '"checkpoint_trouble":"[^"]'
	ak logs --system failing | grep -q 'cannot make a checkpoint: '
	rm "$STATE/layers"
	mv "$W/layers" "$STATE/layers"
	change failing
	! ak info failing | grep -q 'the last one failed'
	ak remove -f failing
}

@test "an interval is refused in words" {
	ak create worded
	run ak checkpoint create worded --every 4s
	fails_with 125 "every: duration '4s' is outside 5s to"
	run ak checkpoint create worded --every soon
	fails_with 125 "every: "
	run ak checkpoint create worded --keep 3
	fails_with 125 "keep: only with every"
	for keep in 0 1001 x; do
		run ak checkpoint create worded --every 5m --keep "$keep"
		fails_with 125 "--keep"
	done
	run ak checkpoint create worded --every off --keep 3
	fails_with 125 "nothing is made when the interval ends"
	run ak checkpoint create missing --every 5m
	fails_with 125 "no sandbox named 'missing'"
	[ -z "$(ak checkpoint list -q worded)" ]
	ak remove worded
}

@test "a sandbox can be stopped and removed while its interval's checkpoint is made" {
	started busy
	ak checkpoint create busy --every 5s 2>/dev/null
	ak exec busy sh -c 'cd /tmp; head -c 300000000 /dev/urandom >ballast'
	is_begun() { ls "$STATE"/layers/.new-*/tmp/* >/dev/null 2>&1; }
	until_true is_begun
	ak remove -f busy
	is_ended() { [ -z "$(processes_of "$AK" | grep 'checkpoint of busy')" ]; }
	until_true is_ended
	ak gc >/dev/null
	run ls -A "$STATE/layers"
	[[ "$output" != *.new-* ]]
}
