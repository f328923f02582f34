#!/usr/bin/env bats
# Written files persist: over stop and start, over the supervisor's death, without its image's name.
load helpers

# Writes to every part of a root, and prints what is there.
write_all='umask 022; for d in / /tmp /var/tmp /etc "$HOME" /usr/local /opt /run /srv/deep/er; do
	mkdir -p $d 2>/dev/null; echo "$d" >$d/kept-file 2>/dev/null; done; ln -s kept-file /tmp/kept-link; mkfifo /tmp/kept-fifo
	chmod 4711 /tmp/kept-file; touch -d "2001-02-03 04:05:06" /tmp/kept-file; sync'
read_all='cat /kept-file /tmp/kept-file /var/tmp/kept-file /etc/kept-file "$HOME/kept-file" /run/kept-file /srv/deep/er/kept-file
	readlink /tmp/kept-link; test -p /tmp/kept-fifo && echo fifo; stat -c "%a %Y" /tmp/kept-file'

@test "all that is written stays over stop and start, in every part of the root" {
	for image in host bb; do
		started "stays-$image" --image "$image"
		ak exec "stays-$image" sh -c "$write_all"
		before=$(ak exec "stays-$image" sh -c "$read_all")
		[ "$(wc -l <<<"$before")" -eq 10 ] || { echo "$before"; false; }
		ak stop "stays-$image"
		ak start "stays-$image"
		[ "$(ak exec "stays-$image" sh -c "$read_all")" = "$before" ]
	done
}

@test "what was written is there after kill -9 of the supervisor, of init, and of both" {
	for image in host bb; do
		name=killed-$image
		started "$name" --image "$image"
		ak exec "$name" sh -c "$write_all"
		before=$(ak exec "$name" sh -c "$read_all")
		for victim in supervisor init both; do
			pids=$(field "$name" "$victim")
			[ "$victim" != both ] || pids="$(field "$name" supervisor) $(field "$name" init)"
			# shellcheck disable=SC2086
			kill -9 $pids
			is_stopped() { [[ "$(state "$name")" == stopped* ]]; }
			until_true is_stopped
			ak start "$name"
			[ "$(ak exec "$name" sh -c "$read_all")" = "$before" ]
		done
	done
}

@test "a restrictive sandbox keeps its home and its /tmp" {
	for image in host bb; do
		name=tight-$image
		started "$name" -p restrictive --image "$image"
		ak exec "$name" sh -c 'echo home >~/file; echo tmp >/tmp/file; pwd'
		ak restart "$name"
		run ak exec "$name" sh -c 'cat ~/file /tmp/file'
		says "home
tmp"
	done
}

@test "a read-only root stays read-only, and /tmp is kept" {
	for image in host bb; do
		name=readonly-$image
		started "$name" --read-only --image "$image"
		ak exec "$name" sh -c 'echo tmp >/tmp/file'
		for round in 1 2; do
			run ak exec "$name" sh -c 'for d in / /etc /var /opt /bin; do echo x >$d/x && echo "wrote $d"; done 2>/dev/null; cat /tmp/file'
			says tmp
			ak restart "$name"
		done
	done
}

@test "owners stay" {
	has_many_ids || skip "needs more than one id"
	started owners --image bb
	ak exec owners sh -c 'mkdir /data; echo x >/data/app; chown -R app:extra /data; chmod 750 /data'
	ak restart owners
	run ak exec owners stat -c '%u:%g %a' /data /data/app
	says "1234:55 750
1234:55 644"
	run ak exec -u app owners sh -c 'echo y >/data/mine; stat -c %u:%g /data/mine'
	says "1234:1234"
}

@test "an image's file that was deleted stays deleted, a directory made anew stays empty" {
	started holes --image bb
	ak exec holes sh -c 'rm /doomed; rm -r /opaque; mkdir /opaque; echo upper >/opaque/upper'
	ak restart holes
	run ak exec holes sh -c 'ls /doomed 2>&1; ls /opaque'
	[[ "${lines[0]}" == *"No such file"* ]]
	[ "${lines[1]}" = upper ]
	[ "${#lines[@]}" -eq 2 ]
}

@test "it keeps its image when that is removed and everything unused is pruned" {
	before=$(ls "$STATE/images/pins" 2>/dev/null)
	ak image import --quiet short-lived "$SHARED/import/bb" >/dev/null
	started pinned --image short-lived
	ak checkpoint create pinned >/dev/null
	checkpoint=$(ak checkpoint list pinned --json | grep -o '"id":"[^"]*"' | cut -d'"' -f4)
	ak stop pinned
	ak image remove short-lived
	ak image prune --all >/dev/null
	ak gc >/dev/null
	ak start pinned
	run ak exec pinned cat /opaque/lower
	says lower
	ak remove -f pinned
	ak image prune --all >/dev/null
	ak create pinned --from "$checkpoint" # the checkpoint keeps it, too
	ak start pinned
	run ak exec pinned cat /opaque/lower
	says lower
	ak remove -f pinned
	ak checkpoint remove "$checkpoint"
	import_bb_again
	[ "$(ls "$STATE/images/pins")" = "$before" ]
}

# prune --all has removed it
import_bb_again() {
	ak image import --quiet bb "$SHARED/import/bb" >/dev/null
}

@test "an image that was imported anew under its name changes nothing of it" {
	cp -a "$SHARED/import/bb" "$SHARED/import/second"
	ak image import --quiet renewed "$SHARED/import/bb" >/dev/null
	started old --image renewed
	echo new >"$SHARED/import/second/opaque/lower"
	ak image import --quiet renewed "$SHARED/import/second" >/dev/null
	ak restart old
	run ak exec old cat /opaque/lower
	says lower
	started new --image renewed
	run ak exec new cat /opaque/lower
	says new
}

@test "a mount shows what is there at each start, and one that is gone is told" {
	mkdir "$W/data"
	echo one >"$W/data/file"
	give "$W/data" "$W/data/file"
	started mounted --mount "$W/data:/data"
	ak exec mounted sh -c 'cat /data/file; echo two >/data/file'
	[ "$(cat "$W/data/file")" = two ]
	ak stop mounted
	mv "$W/data" "$W/elsewhere"
	run ak start mounted
	fails_with 125 "$W/data"
	[[ "$(state mounted)" == stopped* ]]
	mv "$W/elsewhere" "$W/data"
	ak start mounted
	run ak exec mounted cat /data/file
	says two
}

@test "stop loses nothing of what was written a moment ago" {
	started late
	ak exec late sh -c 'head -c 20000000 /dev/zero | tr "\0" x >/tmp/big; echo end >>/tmp/big'
	ak stop late
	ak start late
	run ak exec late sh -c 'wc -c </tmp/big; tail -c 4 /tmp/big'
	says "20000004
end"
}

teardown() {
	[ -z "${small:-}" ] || umount -q "$small" || true
}

# fill PLACE: uses every byte, and then every inode
fill() {
	cat /dev/zero >"$1/filler" 2>/dev/null || true
	for i in $(seq 5000); do mkdir "$1/filler-$i" 2>/dev/null || break; done
	! mkdir "$1/one-more" 2>/dev/null
	! sh -c "echo x >'$1/one-more'" 2>/dev/null || [ ! -s "$1/one-more" ]
}

@test "on a disk that is full to the last byte and inode, list and remove work" {
	[ "$(id -u)" -eq 0 ] || skip "mounting a small file system needs root"
	small=$W/small
	mkdir "$small"
	truncate -s 20M "$W/disk"
	mkfs.ext4 -q -N 400 "$W/disk"
	for mount in "-t tmpfs -o size=8m,nr_inodes=400 agentkernel-test" "-o loop $W/disk"; do
		# shellcheck disable=SC2086
		mount $mount "$small" || { [[ "$mount" == *loop* ]] && echo "no loop devices" && continue; }
		give "$small"
		fill "$small"
		run as env AGENTKERNEL_HOME="$small/state" "$AK" list # without any state directory
		[ "$status" -eq 0 ] || { echo "$mount: $output"; false; }
		rm -rf "$small"/filler* "$small"/one-more
		as env AGENTKERNEL_HOME="$small/state" "$AK" create one >/dev/null
		as env AGENTKERNEL_HOME="$small/state" "$AK" create two >/dev/null
		fill "$small"
		run as env AGENTKERNEL_HOME="$small/state" "$AK" list --all
		[[ "$status" -eq 0 && "$output" == *one* && "$output" == *two* ]] || { echo "$mount: $output"; false; }
		run as env AGENTKERNEL_HOME="$small/state" "$AK" remove one
		[ "$status" -eq 0 ] || { echo "$mount: $output"; false; }
		[ ! -e "$small/state/sandboxes/one" ]
		run as env AGENTKERNEL_HOME="$small/state" "$AK" list --all
		[[ "$output" != *one* && "$output" == *two* ]]
		as env AGENTKERNEL_HOME="$small/state" "$AK" remove two
		[ -z "$(find "$small/state/sandboxes" -mindepth 2)" ]
		umount "$small"
	done
}
