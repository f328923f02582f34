#!/usr/bin/env bats
# What a run keeps, what a sandbox has changed and uses, checkpoints as one file, and disks with an end.
load helpers

# checkpoint NAME: its id
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
	fails_with 125 "is no name for a sandbox"
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
	fails_with 125 "no sandbox 'nosuch'"
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
	[ "$status" -ne 0 ] # still, after a restart
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
	# inside: links to the host's paths, and up and up
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
