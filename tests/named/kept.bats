#!/usr/bin/env bats
# What a run keeps, what a sandbox has changed and uses, checkpoints as one file, and limited disks.
load helpers

# checkpoint NAME: prints its id
checkpoint() {
	ak checkpoint create "$@" | grep -o '[0-9a-f]\{12\}' | head -n 1
}

@test "run --keep keeps the sandbox, says its name, and passes the command's end on" {
	for image in host bb; do
		run --separate-stderr ak run --keep --image "$image" sh -c 'echo made >/tmp/made; echo out; exit 3'
		[ "$status" -eq 3 ]
		says out
		name=$(grep -o 'run-[0-9a-f]*' <<<"$stderr" | head -n 1)
		[ -n "$name" ] || { echo "no name in: $stderr"; false; }
		[ -n "$(state "$name")" ]
		[ "$(state "$name")" = running ] || ak start "$name"
		run ak exec "$name" cat /tmp/made
		says made
		ak remove -f "$name"
	done
}

# bats test_tags=once
@test "run --name names it, and takes no other's name" {
	ak run --name called sh -c 'echo first >/tmp/file' 2>/dev/null
	[ -n "$(state called)" ]
	run ak run --name called true
	fails_with 125 "there is a sandbox 'called' already"
	run ak run --name BAD true
	fails_with 125 "invalid sandbox name"
	[ "$(state called)" = running ] || ak start called
	run ak exec called cat /tmp/file
	says first
}

@test "diff tells what was added, changed and deleted, and nothing of an untouched sandbox" {
	started differs --image bb
	run ak diff differs
	says ""
	ak exec differs sh -c 'echo new >/added; echo other >/opaque/lower; rm /doomed; mkdir /dir; touch /dir/in'
	run ak diff differs
	for line in 'A /added' 'C /opaque/lower' 'D /doomed' 'A /dir'; do
		grep -q -E "^${line% *} +${line#* }\$" <<<"$output" || { echo "no '$line' in: $output"; false; }
	done
	before=$output
	ak stop differs
	run ak diff differs
	says "$before"
	ak diff differs --json | python3 -c 'import json, sys; assert len(json.load(sys.stdin)) >= 4'
}

@test "stats are those of the sandbox" {
	started busy --mount "$PROBE:/probe:ro" --pids 99
	ak exec -d busy sh -c 'while :; do :; done'
	ak exec -d busy sleep 100
	sleep 0.6
	ak stats busy --no-stream --json >"$W/stats"
	python3 - "$W/stats" <<-'PY'
	import json, sys
	o = json.loads(open(sys.argv[1]).readline())
	assert o["name"] == "busy", o
	pids = [v for k, v in o.items() if k.startswith("pids") and isinstance(v, int)]
	assert any(2 <= v <= 6 for v in pids), o
	cpu = [v for k, v in o.items() if "cpu" in k and isinstance(v, (int, float))]
	assert any(v > 0 for v in cpu), o
	PY
	run ak stats --no-stream
	[[ "$output" == *busy* ]]
	run ak stats nosuch --no-stream
	fails_with 125 "no sandbox named 'nosuch'"
}

@test "a checkpoint goes into one file and comes back with everything in it" {
	started travels --image bb
	ak exec travels sh -c 'mkdir /tree; cd /tree; echo text >file; ln file hard; ln -s file soft; mkfifo fifo; chmod 600 file; rm /doomed; head -c 2000000 /dev/urandom >big'
	show='cd /tree; stat -c "%n %F %a %u:%g %h" *; sha256sum big file; readlink soft; ls /doomed 2>/dev/null'
	before=$(ak exec travels sh -c "$show" || true)
	id=$(checkpoint travels --comment "on a journey")
	ak checkpoint export "$id" "$W/file"
	ak checkpoint remove "$id"
	ak remove -f travels
	new=$(ak checkpoint import "$W/file" | grep -o '[0-9a-f]\{12\}' | head -n 1)
	ak create arrived --from "$new"
	ak start arrived
	[ "$(ak exec arrived sh -c "$show" || true)" = "$before" ]
}

# bats test_tags=once
@test "a file that is damaged, cut off or no checkpoint is not imported, and leaves nothing" {
	started source --image bb
	ak exec source sh -c 'head -c 300000 /dev/urandom >/big; echo text >/file'
	id=$(checkpoint source)
	ak checkpoint export "$id" "$W/file"
	before=$(ak checkpoint list --json)
	layers=$(find "$STATE/layers" -mindepth 1 -maxdepth 1 | sort)
	python3 - "$W/file" "$W" <<-'PY'
	import random, sys
	data = bytearray(open(sys.argv[1], "rb").read())
	random.seed(5)
	def write(name, content):
	    open(sys.argv[2] + "/bad-" + name, "wb").write(bytes(content))
	write("cut", data[:len(data) // 2])
	write("empty", b"")
	write("noise", random.randbytes(5000))
	for i in range(4):
	    changed = bytearray(data)
	    at = random.randrange(len(data) // 4, len(data) * 3 // 4)
	    changed[at] ^= 0x40
	    write("flip%d" % i, changed)
	PY
	chmod 644 "$W"/bad-*
	for file in "$W"/bad-*; do
		run ak checkpoint import "$file"
		[ "$status" -eq 125 ] || { echo "$file: $output"; false; }
		[ "$(wc -l <<<"$output")" -eq 1 ] || { echo "$file: $output"; false; }
	done
	[ "$(find "$STATE/layers" -mindepth 1 -maxdepth 1 | sort)" = "$layers" ]
	[ "$(ak checkpoint list --json)" = "$before" ]
	run ak checkpoint import "$W/nosuch"
	fails_with 125 nosuch
}

# rewrite FROM TO KEY VALUE: changes a name, time or comment in a checkpoint's file
rewrite() {
	python3 - "$@" <<-'PY'
	import sys
	source, target, key, value = sys.argv[1:]
	data = open(source, "rb").read()
	rows = data[16:16 + int(data[:15])].split(b"\0")[:-1]
	rows = [r for r in rows if not r.startswith(key.encode() + b"=")] + [key.encode() + b"=" + value.encode()]
	text = b"".join(r + b"\0" for r in rows)
	open(target, "wb").write((b"%015d\0" % len(text) + text).ljust(32768, b"\0") + data[32768:])
	PY
	chmod 644 "$2"
}

@test "a file's sandbox has a name that could be one, and its time is not to come" {
	ak create origin
	id=$(checkpoint origin)
	ak checkpoint export "$id" "$W/file"
	rewrite "$W/file" "$W/named" sandbox other
	new=$(ak checkpoint import "$W/named")
	[[ "$(ak checkpoint list --json)" == *'"sandbox":"other"'* ]]
	for name in '../origin' 'UPPER' 'a b' '' "$(printf 'x\033[2J')" "$(printf '%064d' 0)"; do
		rewrite "$W/file" "$W/bad" sandbox "$name"
		run ak checkpoint import "$W/bad"
		[ "$status" -eq 125 ] || { echo "$name: $output"; false; }
		[[ "$output" != *$'\033'* ]]
	done
	rewrite "$W/file" "$W/long" comment "$(printf '%01025d' 0)"
	run ak checkpoint import "$W/long"
	fails_with 125 "a comment has at most"
	rewrite "$W/file" "$W/later" created 4102444800
	later=$(ak checkpoint import "$W/later")
	python3 -c 'import json, sys, time; assert all(c["created"] <= time.time() for c in json.loads(sys.argv[1]))' "$(ak checkpoint list --json)"
	ak checkpoint remove "$id" "$new" "$later"
}

@test "an export goes to a file of its own, whatever lies where it may be written meanwhile" {
	ak create exported
	id=$(checkpoint exported)
	mkdir "$W/open"
	chmod 1777 "$W/open"
	echo canary >"$W/canary"
	chmod 666 "$W/canary"
	# prepared by another user: the old names, as links and as files
	ln -s "$W/canary" "$W/open/file.part"
	ln -s "$W/canary" "$W/open/file"
	: >"$W/open/second.part"
	chmod 666 "$W/open/second.part"
	chown -h "$CALLER_ID:$CALLER_ID" "$W/open/file"
	ak checkpoint export "$id" "$W/open/file"
	ak checkpoint export "$id" "$W/open/second"
	[ "$(cat "$W/canary")" = canary ]
	[ -L "$W/open/file.part" ]
	[ ! -L "$W/open/file" ]
	[ "$(stat -c %a "$W/open/file" "$W/open/second" | sort -u)" = 600 ]
	[ ! -s "$W/open/second.part" ]
	[ "$(find "$W/open" -mindepth 1 | wc -l)" -eq 4 ]
	(cd "$W/open" && ak checkpoint export "$id" third)
	new=$(ak checkpoint import "$W/open/third")
	run ak checkpoint export "$id" "$W/open/"
	fails_with 125 "not the name of a file"
	run ak checkpoint export "$id" "$W/nosuch/file"
	fails_with 125 "nosuch"
	mkdir "$W/taken"
	run ak checkpoint export "$id" "$W/taken"
	[ "$status" -eq 125 ]
	[ -z "$(find "$W" -name '.agentkernel-checkpoint-*')" ]
	ak checkpoint remove "$id" "$new"
}

@test "--disk ends writing at its limit, and nothing else; or is refused in words" {
	run ak create small --disk 32M
	if [ "$status" -ne 0 ]; then
		fails_with 125 "--disk"
		[ -z "$(state small)" ]
		return
	fi
	ak start small
	run ak exec small sh -c 'head -c 100000000 /dev/zero >/root/big'
	[ "$status" -ne 0 ]
	[[ "$output" == *"o space"* || "$output" == *quota* ]]
	[ "$(ak exec small sh -c 'wc -c </root/big')" -le 34000000 ]
	ak exec small sh -c 'rm /root/big; echo fits >/root/small'
	ak restart small
	run ak exec small cat /root/small
	says fits
	run ak exec small sh -c 'head -c 100000000 /dev/zero >/root/big'
	[ "$status" -ne 0 ] # still limited after a restart
	ak remove -f small
	[ -z "$(grep -F "$STATE" /proc/self/mountinfo)" ]
}

@test "cp brings files, trees and tar archives in and out as they are" {
	started copies --image bb
	mkdir -p "$W/tree/sub"
	echo text >"$W/tree/file"
	ln -s file "$W/tree/link"
	head -c 3000000 /dev/urandom >"$W/tree/sub/big"
	chmod 750 "$W/tree/sub"
	give -R "$W/tree"
	ak cp "$W/tree" copies:/root/
	ak cp "$W/tree/file" copies:/root/renamed
	run ak exec copies sh -c 'cat /root/renamed; readlink /root/tree/link; stat -c "%a %u" /root/tree/sub'
	says "text
file
750 0"
	ak cp copies:/root/tree "$W/back"
	diff -r "$W/tree" "$W/back"
	[ "$(stat -c %u "$W/back/file")" = "$CALLER_ID" ]
	ak cp copies:/root/tree - | tar -tf - | grep -q 'sub/big'
	tar -C "$W/tree" -cf - . | ak cp - copies:/opt
	run ak exec copies cat /opt/file
	says text
	for bad in "$W/nosuch copies:/x" "copies:/nosuch $W/x" "$W/tree $W/other" "copies:/a copies:/b" "nosuch:/a $W/x"; do
		# shellcheck disable=SC2086
		run ak cp $bad
		[ "$status" -eq 125 ] || { echo "$bad: $status $output"; false; }
		[ "$(wc -l <<<"$output")" -eq 1 ] || { echo "$bad: $output"; false; }
	done
}

@test "links on neither side lead cp out of where it was sent" {
	started escapes --image bb
	mkdir "$W/canary" "$W/out"
	echo secret-of-the-host >"$W/canary/secret"
	chmod -R 777 "$W/canary" "$W/out"
	give "$W/out"
	echo new >"$W/new"
	chmod 644 "$W/new"
	# inside: links to the host's paths, and upwards
	ak exec escapes sh -c "ln -s $W/canary /root/abs; ln -s ../../../../../../..$W/canary /root/dots; ln -s /proc/1/root$W/canary /root/proc; mkdir /root/tree; ln -s $W/canary/secret /root/tree/file"
	for link in abs dots proc; do
		run ak cp "$W/new" "escapes:/root/$link/new"
		run ak cp "escapes:/root/$link/secret" "$W/out/stolen"
		[ "$status" -eq 125 ]
		run ak cp -L "escapes:/root/$link" "$W/out/stolen"
	done
	run ak cp -L escapes:/root/tree/file "$W/out/stolen"
	run ! grep -r secret-of-the-host "$W/out"
	[ "$(ls -A "$W/canary")" = secret ]
	# an archive from inside that would write through a link, or upwards
	ak exec escapes sh -c "mkdir /root/evil; cd /root/evil; ln -s $W/canary link"
	ak cp escapes:/root/evil "$W/out/" 2>/dev/null || true
	ak exec escapes sh -c 'cd /root/evil; rm link; mkdir link; echo x >link/planted'
	run ak cp escapes:/root/evil "$W/out/"
	[ ! -e "$W/canary/planted" ]
	[ "$(cat "$W/canary/secret")" = secret-of-the-host ]
}
