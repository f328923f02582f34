#!/usr/bin/env bats
# What a sandbox leaves on its disk for its own next start. It starts, or fails with a message;
# nothing of the host is shown, changed or waited for.
load helpers

# Files of the host that everyone may write, so that owners do not stop an escape.
make_canary() {
	mkdir -p "$W/canary/etc" "$W/canary/deep/er"
	echo secret-of-the-host | tee "$W/canary/secret" "$W/canary/etc/secret" >"$W/canary/hosts"
	echo 'evil:x:0:0::/:/bin/sh' >"$W/canary/passwd"
	chmod -R 777 "$W/canary"
	before=$(canary_state)
}

canary_state() {
	find "$W/canary" -printf '%p %m %u %s %T@ %l\n' | sort
	cat "$W/canary/secret" "$W/canary/hosts"
}

# Each kind at each place; callers other than root are tested with one image.
check_kind() {
	local image images=(host bb)
	[ "${AS:-root}" = root ] || images=("${images[CALLER_ID == 12345 ? 0 : 1]}")
	make_canary
	mkdir "$W/data"
	give "$W/data"
	for image in "${images[@]}"; do
		as env AK="$AK" python3 "$TOP/tests/named/hostile.py" "$1" "$image" "$W/canary" || return 1
	done
	[ "$(canary_state)" = "$before" ]
}

@test "links to paths of the host lead nowhere" {
	check_kind link
}

@test "links with many dots lead nowhere" {
	check_kind dots
}

# bats test_tags=once
@test "links through /proc lead nowhere" {
	check_kind proc
}

# bats test_tags=once
@test "links to themselves hold up nothing" {
	check_kind loop
}

@test "fifos are not waited for" {
	check_kind fifo
}

# bats test_tags=once
@test "sockets are no files" {
	check_kind socket
}

# bats test_tags=once
@test "files where directories belong" {
	check_kind file
}

# bats test_tags=once
@test "directories where files belong" {
	check_kind directory
}

@test "directories that are closed to everyone" {
	check_kind closed
}

@test "whiteouts of what a root needs" {
	check_kind whiteout
}

@test "a sandbox does it itself, from inside" {
	make_canary
	for image in host bb; do
		name=itself-$image
		started "$name" --image "$image"
		ak exec -T "$name" sh -c "cd /; for p in etc/resolv.conf etc/hosts etc/hostname etc/machine-id etc/passwd etc/group; do
			rm -rf \$p; ln -s ../../../../../..$W/canary/hosts \$p; done
			for p in home root var run tmp opt srv; do mv \$p \$p.old || rm -rf \$p; ln -s $W/canary \$p; done; true" 2>/dev/null
		ak stop "$name"
		run ak start "$name"
		[ "$status" -eq 0 ] || fails_with 125 "start sandbox '$name': "
		run ak exec -T "$name" sh -c 'cat /home/secret /etc/hosts /tmp/secret /var/secret; echo x >/tmp/new'
		[[ "$output" != *secret-of-the-host* ]] || { echo "$output"; false; }
		run ak exec -T -u evil "$name" true
		[ "$status" -eq 125 ]
		ak remove -f "$name"
	done
	[ "$(canary_state)" = "$before" ]
}

# bats test_tags=once
@test "a disk whose upper or work directory is a link is refused, and the link's end is left alone" {
	make_canary
	started outside
	ak stop outside
	for part in upper work; do
		disk=$STATE/sandboxes/outside/disk.0
		mv "$disk/$part" "$disk/$part.old"
		as ln -s "$W/canary" "$disk/$part"
		run ak start outside
		[ "$status" -eq 0 ] || fails_with 125 "start sandbox 'outside'"
		if [ "$status" -eq 0 ]; then
			run ak exec outside cat /secret
			[[ "$output" != *secret-of* ]]
			ak stop outside
		fi
		[ "$(canary_state)" = "$before" ]
		rm "$disk/$part"
		mv "$disk/$part.old" "$disk/$part"
	done
	ak start outside
}

# bats test_tags=once
@test "names that deceive do so to nobody" {
	started names
	ak exec names sh -c 'mkdir /tmp/$(printf "a\033[2Jb"); touch "/tmp/-rf" "/tmp/
newline"; for i in $(seq 60); do mkdir -p d; cd d; done; echo deep >file'
	ak checkpoint create names >/dev/null
	ak fork names names-2
	ak stop names
	ak remove names
	run ak exec names-2 sh -c 'ls /tmp | wc -l'
	says 4
}

@test "the user database may be anything: exec with a user reads it safely" {
	started passwd --image bb
	for text in '' 'root' 'root:x:0:0' 'root:x:99999999999:0::/:/bin/sh' "$(printf 'x%.0s' $(seq 5000))" 'root:x:-1:-1::/:/bin/sh'; do
		ak exec passwd sh -c 'cat >/etc/passwd' <<<"$text"
		run ak exec -u root passwd true
		[ "$status" -eq 125 ] || [ "$status" -eq 0 ]
		[ "$(wc -l <<<"$output")" -eq 1 ]
		ak exec -u 0 passwd true
	done
	ak exec passwd sh -c 'rm /etc/passwd; mkfifo /etc/passwd'
	run ak exec -u root passwd true
	fails_with 125 "/etc/passwd"
	ak exec passwd sh -c 'rm /etc/passwd; ln -s /dev/zero /etc/passwd'
	run ak exec -u root passwd true
	fails_with 125 "/etc/passwd"
	ak exec passwd sh -c 'rm /etc/passwd; head -c 50000000 /dev/zero >/etc/passwd'
	run ak exec -u root passwd true
	fails_with 125 "/etc/passwd"
	ak exec passwd sh -c 'rm /etc/passwd; echo "mine:x:0:0::/tmp:/bin/sh" >/etc/passwd'
	run ak exec -u mine passwd sh -c 'id -u; echo $HOME'
	says "0
/tmp"
}

# harmless COMMAND...: prints nothing that a terminal would interpret
harmless() {
	"$@" >"$W/shown" 2>&1 || true
	[ -s "$W/shown" ]
	python3 - "$W/shown" "$*" <<-'PY'
	import sys, unicodedata
	text = open(sys.argv[1], "rb").read().decode()  # not UTF-8: that fails, too
	obeyed = lambda c: unicodedata.category(c) == "Cc"
	if "--json" not in sys.argv[2]:  # which has the text as it is, and escapes control characters
	    obeyed = lambda c: (unicodedata.category(c) in ("Cc", "Zl", "Zp") or c in "\u200e\u200f\u061c" or "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069")
	bad = [c for c in text if c != "\n" and obeyed(c)]
	assert not bad, (sys.argv[2], bad)
	PY
}

@test "names, commands, labels and comments of a sandbox steer no terminal, and JSON stays JSON" {
	evil=$(printf 'x\302\233' ; printf '2J\302\205\233[31m\377\342\200\256z')
	ak create loud --label "key=$evil"
	ak start loud
	ak exec loud sh -c 'cd /tmp && : >"$1" && mkdir "d$1"' - "$evil"
	ak exec -d loud sh -c 'sleep 300' "$evil"
	id=$(ak checkpoint create loud --comment "$evil")
	[ -n "$(ak diff loud | grep -a 'x.xc2.x9b2J')" ]
	for command in "diff loud" "ps loud" "list --all" "info loud" "checkpoint list" "audit --sandbox loud" "stats --no-stream loud"; do
		harmless ak $command
	done
	harmless ak exec loud "$evil"
	harmless ak run "$evil"
	harmless ak start "$evil"
	harmless ak cp "loud:/tmp/$evil/nosuch" "$W/there"
	harmless ak network check "$evil"
	for command in "diff --json loud" "ps --json loud" "list --all --json" "info --json loud" "checkpoint list --json"; do
		harmless ak $command
		python3 -c 'import json, sys; json.load(sys.stdin)' <"$W/shown"
	done
	harmless ak audit --json --sandbox loud
	python3 -c 'import json, sys; [json.loads(l) for l in sys.stdin]' <"$W/shown"
	# JSON has the name unchanged, as far as it is text
	ak list --all --json | python3 -c 'import json, sys; assert any("x\u009b2J\u0085" in l for s in json.load(sys.stdin) for l in s["labels"])'
	ak checkpoint remove "$id"
}
