#!/usr/bin/env bats
# Checkpoints: everything that a sandbox has on disk at one moment, and what is created from it.
load helpers

prepare_file() {
	started base --image bb
}

# checkpoint NAME [options]: prints its id
checkpoint() {
	ak checkpoint create "$@" | grep -o '[0-9a-f]\{12\}' | head -n 1
}

# A tree with every kind of file.
make_tree='mkdir /tree; cd /tree; echo text >file; ln file hard; ln -s file soft; ln -s /nowhere dangling; mkfifo fifo
	mkdir -m 1777 sticky; mkdir -m 0 closed; echo x >unreadable; chmod 0 unreadable; head -c 3000000 /dev/urandom >big
	dd if=/dev/zero of=sparse bs=1 count=1 seek=50000000 2>/dev/null; touch "a name with spaces" "$(printf "new\nline")"
	mkdir -p deep/er/est; touch -d "2001-02-03 04:05:06" file deep/er; rm /doomed; rm -r /opaque; mkdir /opaque; echo upper >/opaque/upper; sync'
show_tree='cd /; find tree opaque doomed | sort | while read -r f; do stat -c "%n %F %a %u:%g %h %s" "$f" 2>/dev/null || echo "$f?"; done
	find tree -type f ! -name unreadable ! -name "*line*" | sort | xargs -d "\n" sha256sum 2>/dev/null; stat -c %Y tree/file tree/deep/er; readlink tree/soft; readlink tree/dangling'

@test "content, owners, modes, times, links and holes are as they were, in restore, fork and create" {
	started tree --image bb
	ak exec tree sh -c "$make_tree"
	! has_many_ids || ak exec tree sh -c 'echo x >/tree/given; chown app:extra /tree/given; chmod 640 /tree/given'
	before=$(ak exec tree sh -c "$show_tree" 2>&1)
	[ "$(wc -l <<<"$before")" -gt 20 ] || { echo "$before"; false; }
	id=$(checkpoint tree --comment "all of it")
	ak exec tree sh -c 'rm -rf /tree /opaque; echo other >/doomed; echo new >/new'
	ak stop tree
	ak checkpoint restore tree "$id"
	ak create from --from "$id"
	ak fork tree forked
	for name in tree from forked; do
		[ "$(state "$name")" = running ] || ak start "$name"
		after=$(ak exec "$name" sh -c "$show_tree" 2>&1)
		[ "$after" = "$before" ] || { diff <(echo "$before") <(echo "$after"); false; }
		run ak exec "$name" sh -c 'ls /new /doomed 2>/dev/null; ls /opaque'
		says upper
	done
	run ak checkpoint list tree
	[[ "$output" == *"$id"*"all of it"* ]]
}

@test "the host's image has checkpoints, too" {
	started hosty
	ak exec hosty sh -c 'echo one >/tmp/file; rm -f /etc/hosts; mkdir /opt-made'
	id=$(checkpoint hosty)
	ak exec hosty sh -c 'echo two >/tmp/file'
	ak stop hosty
	ak checkpoint restore hosty "$id"
	ak start hosty
	run ak exec hosty sh -c 'cat /tmp/file; ls -d /opt-made; ls /usr/bin | wc -l | grep -c -v "^0"'
	says "one
/opt-made
1"
}

@test "a live checkpoint is of one moment: what is written together is together" {
	started live
	ak exec live sh -c 'cd /tmp; for f in 1 2 3 4 5 6; do head -c 3000000 /dev/urandom >ballast.$f; echo 0 >count.$f; done'
	# with busy processes beside it, init reads its orders late
	ak exec -d live sh -c 'for spinner in 1 2 3 4; do while :; do :; done & done
		cd /tmp; i=0; while :; do i=$((i+1)); for f in 1 2 3 4 5 6; do echo $i >count.$f; done; done'
	for round in 1 2 3 4 5; do
		ak checkpoint create live >/dev/null
	done
	for id in $(ak checkpoint list live --json | grep -o '"id":"[^"]*"' | cut -d'"' -f4); do
		layer=$(tr '\0' '\n' <"$STATE/checkpoints/$id/record" | sed -n 's/^layer=//p' | head -n 1)
		# written one after the other: the first ones may be one ahead, and one may be
		# empty, just being written
		cat "$STATE/layers/$layer"/tmp/count.* | tr '\n' ' ' >"$W/counts"
		awk '{ for (i = 2; i <= NF; i++) if ($i > $(i - 1)) exit 1; exit NF < 5 || $1 - $NF > 1 }' "$W/counts" || { cat "$W/counts"; false; }
	done
	first=$(ak exec live cat /tmp/count.1)
	moves_on() { [ "$(ak exec live cat /tmp/count.1)" != "$first" ]; }
	until_true moves_on # it continues
	ak remove -f live
}

@test "a checkpoint of a sandbox that is stopped meanwhile is none" {
	started going
	ak exec going sh -c 'cd /tmp; for f in $(seq 1500); do echo $f >$f; done; head -c 60000000 /dev/urandom >ballast'
	ak checkpoint create going >"$W/said" 2>&1 &
	checkpoint=$!
	is_begun() { ls "$STATE"/layers/.new-*/tmp/* >/dev/null 2>&1; }
	until_true is_begun
	ak stop going
	status=0
	wait "$checkpoint" || status=$?
	cat "$W/said"
	[ "$status" -ne 0 ]
	grep -q "sandbox 'going' was stopped while it was copied" "$W/said"
	run ak checkpoint list going
	[[ "$output" != *going* ]]
	run ls -A "$STATE/layers"
	[[ "$output" != *.new-* ]]
}

@test "a checkpoint of a paused sandbox leaves it paused" {
	started held
	ak exec held sh -c 'echo x >/tmp/x'
	ak pause held
	id=$(checkpoint held)
	is_state held paused
	ak resume held
	ak create held-2 --from "$id"
	ak start held-2
	run ak exec held-2 cat /tmp/x
	says x
}

@test "forks have all files and nothing else in common" {
	ak exec base sh -c 'echo shared >/tmp/shared'
	ak update base --pids 300
	ak fork base twin --count 3
	for i in 1 2 3; do
		is_state "twin-$i" running
		ak exec "twin-$i" sh -c "cat /tmp/shared; echo $i >/tmp/own; hostname; cat /etc/machine-id" >"$W/$i"
		[ "$(head -n 2 "$W/$i")" = "shared
twin-$i" ]
	done
	[ "$(tail -q -n 1 "$W"/[123] | sort -u | wc -l)" -eq 3 ]
	[ "$(ak exec twin-2 cat /tmp/own)" = 2 ]
	run ak exec base cat /tmp/own
	[ "$status" -ne 0 ]
	run ak exec twin-1 sh -c 'ls -d /proc/[0-9]* | wc -l'
	[ "$output" -le 4 ] # no process was copied
	ak info twin-1 | grep -q '^pids  *300'
	ak info twin-1 | grep -q 'fork of base'
	ak stop twin-1
	ak fork twin-1 twin-cold
	is_state twin-cold created
	run ak fork base twin-2
	fails_with 125 "there is a sandbox 'twin-2' already"
	run ak fork base BAD
	fails_with 125 "invalid sandbox name"
	for count in 0 1001 x; do
		run ak fork base other --count "$count"
		fails_with 125 "--count"
	done
	[ -z "$(ak list -a -q | grep '^other' || true)" ]
}

@test "a checkpoint outlives its sandbox, and a sandbox its checkpoint" {
	started short --image bb
	ak exec short sh -c 'echo kept >/tmp/kept'
	id=$(checkpoint short)
	ak remove -f short
	ak gc >/dev/null
	ak create long --from "$id"
	ak start long
	ak checkpoint remove "$id"
	ak gc >/dev/null
	run ak exec long cat /tmp/kept
	says kept
	ak restart long
	run ak exec long cat /tmp/kept
	says kept
	run ak checkpoint remove "$id"
	fails_with 125 "no checkpoint '$id'"
	ak remove -f long
	layers=$(find "$STATE/layers" -mindepth 1 -maxdepth 1 -type d | wc -l)
	records=$(cat "$STATE"/sandboxes/*/record "$STATE"/checkpoints/*/record 2>/dev/null | tr '\0' '\n' | grep '^layer=' | sort -u | wc -l)
	[ "$layers" -eq "$records" ] # every layer is in a record
}

# bats test_tags=once
@test "ten checkpoints on top of each other, each with its own" {
	ak create chain
	for i in $(seq 10); do
		ak start chain
		ak exec chain sh -c "echo $i >>/tmp/log; echo $i >/tmp/last; rm -f /tmp/only-*; touch /tmp/only-$i"
		ak stop chain
		ids[i]=$(checkpoint chain)
		ak checkpoint restore chain "${ids[i]}"
	done
	for i in 10 1; do
		ak checkpoint restore chain "${ids[i]}"
		ak start chain
		run ak exec chain sh -c 'cat /tmp/last; wc -l </tmp/log; ls /tmp'
		says "$i
$i
last
log
only-$i"
		ak stop chain
	done
}

# bats test_tags=once
@test "more checkpoints below each other than a mount takes are refused in words" {
	started tower
	ak checkpoint create tower >/dev/null
	ak fork tower tower-2
	ak remove -f tower
	ak stop tower-2
	record=$STATE/sandboxes/tower-2/record
	layer=$(tr '\0' '\n' <"$record" | sed -n 's/^layer=//p' | head -n 1)
	for i in $(seq 11 56); do
		as cp -a "$STATE/layers/$layer" "$STATE/layers/$(printf %024x "$i")"
		printf 'layer=%024x\0' "$i" >>"$record"
	done
	run ak checkpoint create tower-2
	fails_with 125 "sandbox 'tower-2' stands on 48 checkpoints already"
	ak start tower-2
	ak exec tower-2 true
}

@test "restore needs a sandbox of the same image, and a checkpoint that is there" {
	id=$(checkpoint base)
	run ak checkpoint restore base "$id"
	[ "$status" -eq 0 ]
	is_state base running
	ak create plain
	run ak checkpoint restore plain "$id"
	fails_with 125 "checkpoint '$id' is of image 'bb', sandbox 'plain' of 'host'"
	for bad in 000000000000 nosuch ../.. ""; do
		run ak checkpoint restore plain "$bad"
		[ "$status" -eq 125 ]
		[[ "$output" == *"no checkpoint"* || "$output" == *missing* ]] || { echo "$bad: $output"; false; }
	done
}

@test "the policy of a checkpoint holds for what is made from it: a restrictive one stays so" {
	started strict -p restrictive
	id=$(checkpoint strict)
	ak create strict-2 --from "$id"
	ak start strict-2
	run ak exec strict-2 sh -c 'id -u; grep CapBnd /proc/self/status'
	says "1000
CapBnd:	0000000000000000"
	ak fork strict strict-3
	run ak exec strict-3 id -u
	says 1000
	run ak create strict-4 --from "$id" --profile permissive
	[ "$status" -eq 125 ] || { ak info strict-4 | grep -q '^profile  *restrictive'; }
}

@test "a layer that was changed is not restored: the digest tells, and others go on" {
	ak create intact
	ak start intact
	ak exec intact sh -c 'echo original >/tmp/file; echo more >/tmp/second'
	id=$(checkpoint intact)
	ak stop intact
	layer=$STATE/layers/$(tr '\0' '\n' <"$STATE/checkpoints/$id/record" | sed -n 's/^layer=//p' | head -n 1)
	cp -p "$layer/tmp/file" "$W/file"
	echo tampered >"$layer/tmp/file"
	run ak checkpoint restore intact "$id"
	fails_with 125 "checkpoint '$id'"
	[[ "$output" == *digest* ]] || { echo "$output"; false; }
	cp -p "$W/file" "$layer/tmp/file"
	rm "$layer/tmp/second"
	run ak checkpoint restore intact "$id"
	fails_with 125 "checkpoint '$id'"
	rm -rf "$layer"
	run ak checkpoint restore intact "$id"
	fails_with 125 "checkpoint '$id'"
	ak start intact # unchanged
	run ak exec intact cat /tmp/file
	says original
	ak exec base true
	ak checkpoint remove "$id"
}

# bats test_tags=once
@test "records that are damaged or of a later version: words, a way out, and others untouched" {
	for kind in garbage empty later missing; do
		ak create "bad-$kind"
		record=$STATE/sandboxes/bad-$kind/record
		case $kind in
		garbage) head -c 300 /dev/urandom >"$record" ;;
		empty) : >"$record" ;;
		later) sed -i 's/^agentkernel sandbox [0-9]*/agentkernel sandbox 999/' "$record" ;;
		missing) rm "$record" ;;
		esac
		for words in "start bad-$kind" "info bad-$kind" "exec bad-$kind true" "remove bad-$kind" "checkpoint create bad-$kind" "fork bad-$kind x"; do
			# shellcheck disable=SC2086
			run ak $words
			fails_with 125 "('agentkernel remove -f bad-$kind' removes it)"
		done
		run ak list --all
		[ "$status" -eq 0 ]
		[[ "$output" == *"bad-$kind"*damaged* && "$output" == *base*running* ]]
		ak list --all --json | python3 -c 'import json, sys; json.load(sys.stdin)'
		ak gc >/dev/null
		ak exec base true
		[ -e "$STATE/sandboxes/bad-$kind" ] # left for the user to judge
		ak remove -f "bad-$kind"
		[ ! -e "$STATE/sandboxes/bad-$kind" ]
	done
	ak create bad-policy
	echo x >"$STATE/sandboxes/bad-policy/policy"
	run ak start bad-policy
	fails_with 125 "sandbox 'bad-policy'"
	ak remove bad-policy
	started bad-run
	ak stop bad-run
	echo x >"$STATE/sandboxes/bad-run/run"
	run ak start bad-run
	fails_with 125 "sandbox 'bad-run'"
	ak remove -f bad-run
}

# bats test_tags=once
@test "a checkpoint whose record is damaged is told of and can be removed" {
	id=$(checkpoint base)
	echo garbage >"$STATE/checkpoints/$id/record"
	run ak checkpoint list
	[ "$status" -eq 0 ]
	[[ "$output" == *"there are checkpoints whose record cannot be read"* ]]
	run ak create broken --from "$id"
	[ "$status" -eq 125 ]
	ak gc >/dev/null # removes no layer that the record may name
	ak checkpoint remove "$id"
	run ak checkpoint list
	[[ "$output" != *"cannot be read"* ]]
}

# bats test_tags=once
@test "a comment may have any text, and not too much of it" {
	id=$(checkpoint base --comment $'tab\t"quote" \\ ü')
	ak checkpoint list --json | python3 -c 'import json, sys
assert [c for c in json.load(sys.stdin) if c["id"] == sys.argv[1]][0]["comment"] == "tab\t\"quote\" \\ ü"' "$id"
	run ak checkpoint create base --comment "$(printf 'x%.0s' $(seq 1025))"
	fails_with 125 "a comment has at most 1024 bytes"
}

@test "gc takes what a killed process left of a checkpoint" {
	started swept
	id=$(ak checkpoint create swept)
	as mkdir "$STATE/checkpoints/.new-0123456789ab" "$STATE/checkpoints/.old-0123456789ab"
	as touch "$STATE/checkpoints/.old-0123456789ab/record"
	[[ "$(ak gc --json)" == *'"leftovers":2'* ]]
	[ -z "$(find "$STATE/checkpoints" -name '.new-*' -o -name '.old-*')" ]
	ak checkpoint list | grep -q "$id"
}

# layers_of ID: the names of a checkpoint's layers, highest first
layers_of() {
	tr '\0' '\n' <"$STATE/checkpoints/$1/record" | sed -n 's/^layer=//p'
}

# alone ID: what it costs alone, in bytes
alone() {
	ak checkpoint list --json | tr '{' '\n' | sed -n "s/.*\"id\":\"$1\".*\"alone_bytes\":\([0-9]*\).*/\1/p"
}

@test "the second checkpoint has only what changed, and removing one frees what it costs alone" {
	started grown --image bb
	ak exec grown sh -c 'mkdir /many; for f in 1 2 3 4 5 6 7 8 9; do head -c 1000000 /dev/urandom >/many/$f; done; echo old >/many/text'
	sleep 1
	first=$(checkpoint grown)
	ak exec grown sh -c 'echo new >/many/text; rm /many/9 /doomed; head -c 500000 /dev/urandom >/many/ten'
	sleep 1
	second=$(checkpoint grown)
	ak exec grown sh -c 'head -c 300000 /dev/urandom >/many/eleven'
	third=$(checkpoint grown)
	[ "$(layers_of "$first" | wc -l)" -eq 1 ]
	[ "$(layers_of "$second" | tail -n 1)" = "$(layers_of "$first")" ]
	[ "$(layers_of "$third" | wc -l)" -eq 2 ]
	run ls -A "$STATE/layers/$(layers_of "$second" | head -n 1)/many"
	says "9
ten
text"
	[ "$STATE/layers/$(layers_of "$second" | head -n 1)/many/ten" -ef "$STATE/layers/$(layers_of "$third" | head -n 1)/many/ten" ]
	[ "$(alone "$first")" -eq 0 ] # the others stand on it
	[ "$(alone "$second")" -lt 100000 ]
	[ "$(alone "$third")" -ge 300000 ]
	[ "$(alone "$third")" -lt 500000 ]
	ak checkpoint remove "$second"
	[ "$(alone "$third")" -ge 800000 ]
	ak stop grown
	for id in "$first" "$third"; do
		ak checkpoint restore grown "$id"
		ak start grown
		run ak exec grown sh -c 'ls /many | wc -l; cat /many/text; ls /doomed /many/9 2>/dev/null | wc -l'
		[ "$id" = "$third" ] || says "10
old
2"
		[ "$id" = "$first" ] || says "11
new
0"
		ak stop grown
	done
	ak checkpoint remove "$first" "$third"
}

@test "an index that is damaged or missing costs a complete copy, and nothing else" {
	started index --image bb
	ak exec index sh -c 'head -c 100000 /dev/urandom >/file; sha256sum /file >/sum'
	sleep 1
	for damage in none cut change remove; do
		index=$STATE/sandboxes/index/index
		case $damage in
		cut) truncate -s -40 "$index" ;;
		change) printf x | dd of="$index" bs=1 seek=400 conv=notrunc 2>/dev/null ;;
		remove) rm "$index" ;;
		esac
		id=$(checkpoint index)
		[ "$(layers_of "$id" | wc -l)" -eq 1 ]
		ak create "index-$damage" --from "$id"
		ak start "index-$damage"
		ak exec "index-$damage" sha256sum -c /sum
		ak remove -f "index-$damage"
	done
	id=$(checkpoint index)
	[ "$(layers_of "$id" | wc -l)" -eq 2 ]
}

# write_through_map NAME SETUP: takes checkpoints while /tmp/map is written to through a map
write_through_map() {
	command -v python3 >/dev/null || skip "needs python3"
	started "$1"
	ak exec -d "$1" python3 -c '
import mmap, os, time
f = open("/tmp/map", "w+b"); f.truncate(1 << 20); m = mmap.mmap(f.fileno(), 0)
'"$2"'
n = 0
while True:
    n += 1
    for i in range(256): m[i * 4096:i * 4096 + 8] = b"%08d" % n
    open("/tmp/told.new", "w").write("%08d" % n); os.rename("/tmp/told.new", "/tmp/told"); time.sleep(.001)'
	until_true ak exec "$1" test -e /tmp/told
	for round in 1 2 3; do
		sleep .3
		id=$(checkpoint "$1")
		layer=$STATE/layers/$(layers_of "$id" | head -n 1)
		run python3 -c '
import sys
data = open(sys.argv[1] + "/tmp/map", "rb").read(); told = int(open(sys.argv[1] + "/tmp/told").read())
values = [int(data[i * 4096:i * 4096 + 8]) for i in range(256)]
print(values == sorted(values, reverse=True) and values[0] - values[-1] <= 1 and told <= values[-1] <= told + 1)' "$layer"
		says True
	done
	ak remove -f "$1"
}

@test "what is written through a shared map is in the checkpoint" {
	write_through_map mapped ""
}

@test "what is written through a map of a file that has lost its first name is in the checkpoint" {
	write_through_map mapped-2 'os.rename("/tmp/map", "/tmp/first"); os.link("/tmp/first", "/tmp/map"); os.unlink("/tmp/first")'
}

# bats test_tags=once
@test "copying keeps the sandbox's io limit, and the freeze does not wait for it" {
	[ "${AS:-root}" = root ] || skip "io limits need cgroups"
	for name in slow fast; do
		# shellcheck disable=SC2046
		started "$name" $([ "$name" = fast ] || echo --io-write 20MB/s)
		ak exec "$name" sh -c 'head -c 50000000 /dev/urandom >/tmp/ballast'
		# a large file that is written all the time is copied again while the sandbox is frozen
		ak exec -d "$name" sh -c 'head -c 8000000 /dev/urandom >/tmp/grows; while :; do echo x >>/tmp/grows; done'
		ak checkpoint create "$name" --json >"$W/$name"
		ak remove -f "$name"
	done
	run python3 -c '
import json, sys
slow, fast = (json.load(open(sys.argv[1] + "/" + n)) for n in ("slow", "fast"))
print(slow["total_us"] > 2.5e6, fast["total_us"] < 2.5e6, slow["frozen_us"] < 5e5) or print(slow, fast)' "$W"
	[ "${lines[0]}" = "True True True" ] || { echo "$output"; false; }
}

@test "a running sandbox is restored in one step, and runs on if that is refused" {
	started onestep --image bb
	ak exec onestep sh -c 'echo old >/file'
	id=$(checkpoint onestep)
	ak exec onestep sh -c 'echo new >/file'
	ak exec -d onestep sleep 1000
	init=$(field onestep init)
	layer=$STATE/layers/$(layers_of "$id" | head -n 1)
	cp -p "$layer/file" "$W/file"
	echo tampered >"$layer/file"
	run ak checkpoint restore onestep "$id"
	fails_with 125 "checkpoint '$id'"
	[ "$(field onestep init)" = "$init" ] # it was never stopped
	[ "$(ak exec onestep cat /file)" = new ]
	cp -p "$W/file" "$layer/file"
	run ak checkpoint restore onestep "$id"
	[ "$status" -eq 0 ]
	[[ "$output" == *"sandbox 'onestep' was stopped, restored and started again"* ]]
	is_state onestep running
	[ "$(ak exec onestep cat /file)" = old ]
	ak pause onestep
	ak checkpoint restore onestep "$id"
	is_state onestep running
	ak stop onestep
	ak checkpoint restore onestep "$id"
	is_state onestep stopped
	ak remove -f onestep
}

@test "nobody can start a sandbox between the stop and the start of a restore" {
	started between
	id=$(checkpoint between)
	ak exec between sh -c 'echo later >/tmp/later'
	# it takes a second to stop
	ak exec -d between sh -c 'trap "sleep 1; exit" TERM; while :; do sleep .1; done'
	ak checkpoint restore between "$id" &
	restore=$!
	while kill -0 "$restore" 2>/dev/null; do
		ak start between 2>/dev/null || true
	done
	wait "$restore"
	is_state between running
	run ak exec between ls /tmp/later
	[ "$status" -ne 0 ]
	ak remove -f between
}

@test "a second fork shares the files of the first, and so does a checkpoint of it" {
	started many --image bb
	ak exec many sh -c 'head -c 3000000 /dev/urandom >/big; sha256sum /big >/sum'
	sleep 1
	ak fork many many-1
	ak fork many many-2
	ak exec many sh -c 'echo more >/more'
	id=$(checkpoint many)
	base=$(tr '\0' '\n' <"$STATE/sandboxes/many-1/record" | sed -n 's/^layer=//p')
	[ "$(tr '\0' '\n' <"$STATE/sandboxes/many-2/record" | sed -n 's/^layer=//p' | tail -n 1)" = "$base" ]
	[ "$(layers_of "$id" | tail -n 1)" = "$base" ]
	[ -s "$STATE/layers/$base.digest" ] # restore checks all of it
	ak remove -f many-1
	ak remove -f many-2
	ak checkpoint restore many "$id"
	ak exec many sha256sum -c /sum
	cp -p "$STATE/layers/$base/big" "$W/big"
	echo x >>"$STATE/layers/$base/big"
	run ak checkpoint restore many "$id"
	fails_with 125 digest
	cp -p "$W/big" "$STATE/layers/$base/big"
	ak checkpoint restore many "$id"
	ak checkpoint remove "$id"
	ak remove -f many
}

# used: how many KiB the state directory takes
used() {
	as du -sk "$STATE" | cut -f1
}

@test "the disk shrinks by what a checkpoint cost alone when it is removed" {
	started shrunk --image bb
	ak exec shrunk sh -c 'for f in 1 2 3 4; do head -c 2000000 /dev/urandom >/$f; done'
	sleep 1
	first=$(checkpoint shrunk)
	ak exec shrunk sh -c 'head -c 3000000 /dev/urandom >/1'
	second=$(checkpoint shrunk)
	for id in "$second" "$first"; do
		cost=$(($(alone "$id") / 1024))
		before=$(used)
		ak checkpoint remove "$id"
		freed=$((before - $(used)))
		echo "$id: alone $cost KiB, freed $freed KiB"
		[ "$cost" -gt 2500 ]
		[ "$freed" -ge "$((cost - 50))" ]
		[ "$freed" -le "$((cost + 50))" ] # the record
	done
	ak remove -f shrunk
}
