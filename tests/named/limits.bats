#!/usr/bin/env bats
# Limits of named sandboxes, changed while they run; a full disk; and the audit log.
load helpers

@test "a new memory limit holds at once, and only for what is too much" {
	started memory --mount "$PROBE:/probe:ro" --memory 512M
	run ak exec memory /probe eat 100
	[ "$status" -eq 0 ]
	ak update memory --memory 64M
	run ak exec memory /probe eat 200
	[ "$status" -ne 0 ]
	ak info memory | grep -q '^memory  *64 MiB'
	until_true eventually_usable memory
	ak update memory --memory 512M
	run ak exec memory /probe eat 100
	[ "$status" -eq 0 ]
}

# If init ended the whole sandbox at the limit, it is started again.
eventually_usable() {
	ak exec "$1" true 2>/dev/null || { ak start "$1" 2>/dev/null; ak exec "$1" true 2>/dev/null; }
}

@test "a new limit of processes holds at once" {
	only_root
	started pids --pids 100
	ak exec pids sh -c 'for i in $(seq 50); do sleep 1 & done; wait'
	ak update pids --pids 10
	run ak exec pids sh -c 'for i in $(seq 50); do sleep 1 & done; wait'
	[[ "$output" == *ork* ]] || { echo "$output"; false; }
	ak update pids --pids 100
	ak exec pids sh -c 'for i in $(seq 50); do sleep 0.1 & done; wait'
}

@test "a new limit of processors holds at once" {
	only_root
	started cpus --mount "$PROBE:/probe:ro"
	ak update cpus --cpus 0.1
	id=$(ak exec -d cpus sh -c 'while :; do :; done')
	sleep 0.2
	group=$(groups_of cpus | grep -E '/cpuacct|/cpu/' | head -n 1)
	[ -n "$group" ] || skip "no group that counts"
	used() { cat "$group/cpuacct.usage" 2>/dev/null || cat "${group/\/cpu\//\/cpuacct\/}/cpuacct.usage"; }
	before=$(used)
	sleep 1
	spent=$((($(used) - before) / 1000000))
	[ "$spent" -lt 300 ] || { echo "$spent ms of a second"; false; }
	[ "$spent" -gt 20 ]
	ak kill cpus "$id" --signal KILL
}

# bats test_tags=once
@test "limits stay over a restart, and what is no limit is refused" {
	started again --memory 300M
	ak update again --memory 200M --pids 77
	ak restart again
	ak info again | grep -q '^memory  *200 MiB'
	ak info again | grep -q '^pids  *77'
	run ak update again
	fails_with 125 "no limit to change"
	run ak update again --memory 1
	[ "$status" -eq 125 ]
	run ak update again --profile permissive
	[ "$status" -eq 125 ]
	ak info again | grep -q '^memory  *200 MiB'
}

@test "each act is one line of the audit log, with who, what and how it went" {
	AUDIT_BEFORE=$(wc -l <"$STATE/audit.jsonl")
	ak create noted
	ak start noted
	ak exec noted sh -c 'exit 3' -- $'new\nline "quote" \e[2J' || true
	ak exec -d noted true >/dev/null
	ak pause noted
	ak resume noted
	ak update noted --memory 1G
	ak checkpoint create noted >/dev/null
	ak fork noted noted-2
	ak stop noted
	id=$(ak checkpoint list noted --json | grep -o '"id":"[^"]*"' | cut -d'"' -f4)
	ak checkpoint restore noted "$id"
	ak restart noted
	ak remove noted 2>/dev/null || true
	ak remove -f noted
	ak checkpoint remove "$id"
	tail -n "+$((AUDIT_BEFORE + 1))" "$STATE/audit.jsonl" >"$W/lines"
	python3 - "$W/lines" "$CALLER_ID" <<-'PY'
	import json, sys
	lines = [json.loads(l) for l in open(sys.argv[1])]
	own = [l for l in lines if l.get("sandbox") == "noted" and l["type"] != "end"]
	ends = [l["what"].split(": ")[-1] for l in lines if l.get("sandbox") == "noted" and l["type"] == "end"]
	assert sorted(ends) == ["sandbox", "sandbox", "true"], ends # two runs, and the detached command
	types = [l["type"] for l in own]
	wanted = ["create", "start", "exec", "exec", "pause", "resume", "update", "checkpoint", "fork", "stop", "restore",
	    "restart", "remove", "remove", "checkpoint"]
	assert types == wanted, types
	for l in own:
	    assert l["time"] and l["uid"] == int(sys.argv[2]) and l["pid"] and l["program"] and l["result"], l
	assert [l["result"] for l in own].count("ok") == len(own) - 2, own
	assert own[2]["result"] == "exit status 3", own[2]
	refused = own[wanted.index("remove")]
	assert "cannot be removed" in refused["result"], refused
	assert own[2]["argv"][-1] == 'new\nline "quote" \x1b[2J', own[2]
	made = [l["type"] for l in lines if l.get("sandbox") == "noted-2"]
	assert made == ["create", "start"], made
	PY
	[ "$(grep -c $'\e' "$W/lines")" -eq 0 ]
}

@test "a full disk: words, nothing half-made, and all is well when there is room again" {
	only_root
	needs_kernel 6.3 "a tmpfs that can map owners"
	mkdir "$W/small"
	mount -t tmpfs -o size=24m none "$W/small" # not every kernel accepts it as an overlay's upper directory, but it is a state directory
	STATE=$W/small/state
	full_disk_checks "$W/small" && result=0 || result=$?
	ak remove -f full full-2 full-3 >/dev/null 2>&1 || true
	until_true umount "$W/small"
	[ "$result" -eq 0 ]
}

full_disk_checks() {
	ak create full && ak start full && ak exec full sh -c 'head -c 6000000 /dev/urandom >/root/data; sha256sum /root/data' >"$W/sum" || return 1
	head -c 100M /dev/zero >"$1/fill" 2>/dev/null
	local before
	run ak exec full sh -c 'head -c 1M /dev/zero >/root/more'
	[[ "$status" -ne 0 && "$output" != *"its limit is"* ]] || { echo "$output"; return 1; } # it has none of its own
	before=$(find "$STATE/sandboxes" "$STATE/checkpoints" "$STATE/layers" -mindepth 1 -maxdepth 1 2>/dev/null | sort)
	for words in "create full-2" "checkpoint create full" "fork full full-3" "exec -d full echo hello" "update full --memory 1G"; do
		# shellcheck disable=SC2086
		run ak $words
		if [ "$status" -ne 0 ]; then
			[[ "$output" == "agentkernel: "* && "$(wc -l <<<"$output")" -eq 1 ]] || { echo "$words: $output"; return 1; }
		fi
		echo "$words: $status $output" >>"$W/log"
	done
	grep -q 'checkpoint create full: 125.*No space' "$W/log" || { cat "$W/log"; return 1; }
	grep -q 'create full-2: 125.*No space' "$W/log" || { cat "$W/log"; return 1; }
	ak remove -f full-2 full-3 || return 1
	[ -z "$(find "$STATE/sandboxes/.making" "$STATE/sandboxes/.trash" -mindepth 1 2>/dev/null)" ] || { find "$STATE/sandboxes"; return 1; }
	[ -z "$(find "$STATE/layers" "$STATE/checkpoints" -mindepth 1 -maxdepth 1 -name '.*' 2>/dev/null)" ] || { ls -A "$STATE/layers"; return 1; }
	ak stop full || return 1 # also with a full disk
	rm "$1/fill"
	ak gc >/dev/null && ak start full && [ "$(ak exec full sha256sum /root/data)" = "$(cat "$W/sum")" ] || return 1
	ak create full-2 && ak checkpoint create full >/dev/null && ak fork full full-3 || return 1
	[ "$(ak exec full-3 sha256sum /root/data)" = "$(cat "$W/sum")" ]
}

@test "start on a full disk fails in words or works, and works afterwards" {
	only_root
	needs_kernel 6.3 "a tmpfs that can map owners"
	mkdir "$W/tiny"
	mount -t tmpfs -o size=8m none "$W/tiny"
	STATE=$W/tiny/state
	ak create start-full
	head -c 100M /dev/zero >"$W/tiny/fill" 2>/dev/null || true
	run ak start start-full
	first=$status words=$output
	rm "$W/tiny/fill"
	[ "$first" -eq 0 ] || ak start start-full
	run ak exec start-full echo fine
	second=$output
	ak remove -f start-full
	until_true umount "$W/tiny"
	[ "$second" = fine ]
	[ "$first" -eq 0 ] || [[ "$words" == "agentkernel: start sandbox 'start-full'"*"No space"* ]] || { echo "$words"; false; }
}

@test "update: what is shown inside changes with the limits" {
	started shown --memory 256M --pids 50
	run ak exec shown cat /sys/fs/cgroup/memory.max
	says 268435456
	ak update shown --memory 1G --pids 100
	run ak exec shown sh -c 'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max; sed -n "s/^MemTotal: *//p" /proc/meminfo'
	says "1073741824
101
1048576 kB"
	ak stop shown && ak start shown
	run ak exec shown cat /sys/fs/cgroup/memory.max
	says 1073741824
	run ak diff shown
	says ""
}

@test "update: a sandbox that gets more processors runs on them, commands that are under way too" {
	only_root # without a cgroup the affinity is the limit, and stays
	[ "$(nproc)" -gt 1 ] || skip "this machine has one processor"
	started more --cpus 1
	ak exec -d more sleep 100 >/dev/null
	run ak exec more nproc
	says 1
	ak update more --cpus 2
	run ak exec more sh -c 'nproc; taskset -p "$(pidof sleep)" | sed "s/.*: //"; cat /sys/devices/system/cpu/online; grep -c ^processor /proc/cpuinfo'
	says "2
3
0-1
2"
	ak update more --cpus 1
	run ak exec more sh -c 'nproc; grep -c ^processor /proc/cpuinfo'
	says "1
1"
}

@test "a limit of processes that is reached is told" {
	only_root # a count of refusals needs a cgroup
	started few --pids 20
	run ak exec few sh -c 'for i in $(seq 40); do sleep 0.2 & done; wait'
	[[ "$output" == *"the limit is 20 processes and threads (raise it with --pids)"* ]]
}

@test "a disk that is full is told, and update --disk makes it larger" {
	only_root
	started disk --disk 16M
	run ak exec disk dd if=/dev/zero of=/file bs=1M count=40 status=none
	[[ "$output" == *"the disk inside is full: its limit is 16 MiB (raise it with --disk)"* ]]
	run ak update disk --disk 8M
	[[ "$output" == *"a disk can grow, not shrink: it has 16 MiB"* ]]
	run ak update disk --disk 96M
	[[ "$output" == *"the disk of sandbox 'disk' grows at its next start"* ]]
	# an interrupted resize is completed: the file has grown, its file system has not
	ak stop disk
	truncate -s 96M "$(echo "$STATE"/sandboxes/disk/*/image)" && touch "$(echo "$STATE"/sandboxes/disk/*/image)".grows
	ak start disk
	ak exec disk dd if=/dev/zero of=/more bs=1M count=60 status=none
	[ "$(ak exec disk stat -c %s /more)" -eq $((60 << 20)) ]
	ak info disk | grep -q '^disk  *96 MiB'
}

@test "a sandbox without --disk has no limit to change" {
	ak create unlimited
	run ak update unlimited --disk 1G
	fails_with 125 "sandbox 'unlimited' was created without it"
}
