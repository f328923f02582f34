#!/usr/bin/env bats
# Faults between a pull and the registry, killed pulls, full disks: the right status and message,
# nothing incomplete in the store, and the next pull continues.
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	setup_shared && start_registry && start_faulty && make_base && make_images
}

# A busybox and three layers that do not compress, of 200 kB each.
make_images() {
	local n
	cd "$SHARED" || return 1
	gzip -1k base.tar
	for n in 1 2 3; do
		mkdir -p tree/opt
		head -c 200000 /dev/urandom >"tree/opt/$n"
		pack tree "$n.tar"
		gzip -1 "$n.tar"
		rm -rf tree
	done
	head -c 1500000 /dev/urandom >big
	tar -cf big.tar big
	image big big.tar && push big big:1 --preserve-digests || return 1
	image two base.tar.gz 1.tar.gz && push two two:1 || return 1
	image four base.tar.gz 1.tar.gz 2.tar.gz 3.tar.gz && push four four:1 && image one 1.tar.gz && push one one:1
}

teardown() {
	rm -rf "$SHARED/home/.docker"
	[ -z "${SMALL:-}" ] || umount "$SMALL" 2>/dev/null || umount -l "$SMALL"
}

login() {
	mkdir -p -m 755 "$SHARED/home/.docker"
	echo "{\"auths\":{\"$FAULTY\":{\"auth\":\"$(printf ann:secret | base64)\"}}}" >"$SHARED/home/.docker/config.json"
	give "$SHARED/home/.docker/config.json"
}

pull() {
	ak image pull --quiet "$FAULTY/${1:-four:1}"
}

runs() {
	[ "$(ak run --pull never --image "$FAULTY/four:1" sh -c 'cat /opt/* | wc -c')" = 600000 ]
}

# refuses TEXT [IMAGE]: and the store has nothing of it
refuses() {
	run pull "${2:-}"
	fails_with 125 "$1" && store_is_empty
}

# The highest start of a range that was requested, according to the log.
first_byte() {
	sed -n 's/^main GET .*\/blobs\/.* range=bytes=\([0-9]*\)-.*/\1/p' "$SHARED/faulty.log" | sort -n | tail -n 1
}

# ---- broken transfers ----

@test "a transfer that is cut goes on where it was" {
	fault cut=150000,4
	pull
	runs
	[ "$(requests 'range=bytes=150000-')" -ge 2 ]
}

# bats test_tags=once
@test "a transfer that is cut every 300000 bytes comes to its end" {
	fault cut=300000
	pull
	runs
	[ "$(first_byte)" -ge 900000 ]
}

@test "a pull that was killed is resumed, not started anew" {
	fault cut=600000 # it pauses after each
	as setsid sh -c "echo \$\$ >'$W/pid'; exec '$AK' image pull --quiet $FAULTY/big:1" 3>&- &
	for _ in $(seq 200); do
		[ -z "$(find "$W/state/images/blobs/partial" -size +500k 2>/dev/null)" ] || break
		sleep 0.02
	done
	kill -KILL -- "-$(cat "$W/pid")"
	wait $! || true
	size=$(stat -c %s "$W"/state/images/blobs/partial/*)
	[ "$size" -ge 500000 ]
	fault
	pull big:1
	[ "$(requests "blobs.* 206 .*range=bytes=$size-")" -eq 1 ]
	[ "$(requests blobs)" -eq 1 ]
}

# Creates the partial file of a killed pull, with the first 100000 bytes.
make_partial() {
	local digest
	pull "one:1"
	ak image remove -q "$FAULTY/one:1"
	digest=$(sha256sum "$SHARED/1.tar.gz" | cut -d ' ' -f 1)
	as sh -c "head -c 100000 '$SHARED/1.tar.gz' >'$W/state/images/blobs/partial/$digest'"
}

# bats test_tags=once
@test "a registry that ignores the range is read from the start" {
	fault
	make_partial
	fault ignore-range
	run -0 ak image pull --json "$FAULTY/one:1"
	[ "$(requests 'blobs.* 200 .*range=bytes=100000-')" -eq 1 ]
}

# bats test_tags=once
@test "a registry that answers with another range does not spoil the layer" {
	fault
	make_partial
	fault wrong-range
	run pull one:1
	[ "$(requests 'range=bytes=100000-')" -ge 1 ]
	[ "$status" -eq 0 ] || store_is_empty
	[ "$status" -eq 0 ] || [[ "$output" == *range* ]]
}

@test "a beginning that was spoilt is thrown away and fetched again" {
	fault
	make_partial
	as sh -c "for f in '$W'/state/images/blobs/partial/*; do head -c 100000 /dev/zero >\"\$f\"; done"
	pull one:1
}

@test "a blob that could not be put in its place is put there the next time" {
	[ "${AS:-root}" != root ] || skip "root may write in any directory"
	fault
	pull one:1
	ak image remove -q "$FAULTY/one:1"
	as sh -c "chmod 500 '$W/state/images/blobs/sha256'"
	run pull one:1
	[ "$status" -ne 0 ]
	as sh -c "chmod 700 '$W/state/images/blobs/sha256'"
	pull one:1
}

# bats test_tags=once
@test "a blob with one wrong byte is refused, and right the next time" {
	fault flip=1
	refuses "their digest is wrong"
	pull
	runs
}

# bats test_tags=once
@test "a blob that is always wrong is refused with its digest" {
	digest=$(sha256sum "$SHARED/2.tar.gz" | cut -d ' ' -f 1)
	fault "wrong=$digest"
	run pull
	fails_with 125 "$digest"
	[ ! -e "$W/state/images/blobs/sha256/$digest" ]
	[ ! -e "$W/state/images/blobs/partial/$digest" ]
	[ -z "$(find "$W/state/images/names" "$W/state/images/records" -mindepth 1)" ]
}

# bats test_tags=once
@test "a manifest with one wrong byte is refused when it is asked for by digest" {
	digest=$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$REGISTRY/four:1")
	fault swap
	run ak image pull --quiet "$FAULTY/four@$digest"
	fails_with 125 "${digest:0:20}"
	store_is_empty
	fault
	ak image pull --quiet "$FAULTY/four@$digest"
}

# bats test_tags=once
@test "a blob that ends too soon is asked for the rest" {
	fault short=100000
	pull one:1
	[ "$(requests 'range=bytes=200000-')" -eq 1 ]
}

# bats test_tags=once
@test "a blob that goes on too long is refused, one that is longer by its headers alone is not" {
	fault extra=1000
	refuses "has more than its"
	fault lie=1000
	pull
	runs
}

# ---- answers ----

# bats test_tags=once
@test "429 is obeyed: the pull waits as long as the registry asks" {
	fault blob-status=429,1,1
	start=$(date +%s%N)
	pull
	[ $((($(date +%s%N) - start) / 1000000)) -ge 1000 ]
	[ "$(requests ' 429 ')" -eq 1 ]
	runs
}

# bats test_tags=once
@test "500 is tried again" {
	fault status=500,2
	pull
	[ "$(requests ' 500 ')" -eq 2 ]
	runs
}

# bats test_tags=once
@test "a registry that wants an hour is not waited for" {
	fault status=503,1000,3600
	refuses "answers 503"
	[ "$(requests ' 503 ')" -eq 1 ]
}

# bats test_tags=once
@test "a registry that redirects in a circle is refused" {
	fault loop
	refuses "redirect"
	[ "$(requests ' 307 ')" -lt 40 ]
}

# bats test_tags=once
@test "a registry that asks for an absurd time is not waited for, nor asked again at once" {
	fault status=503,1000,99999999999
	refuses "asked to wait more than"
	[ "$(requests ' 503 ')" -eq 1 ]
}

# bats test_tags=once
@test "a registry that redirects to another scheme or to nowhere is refused in true words" {
	for place in ftp://127.0.0.1/x file:///etc/passwd gopher://127.0.0.1/x; do
		fault "away=$place"
		refuses "it redirects to something that is neither http nor https"
	done
	fault away
	refuses "it redirects without saying where to"
	[ "$(requests ' 307 ')" -le 4 ]
}

# bats test_tags=once
@test "a registry that ignores the range and cuts every answer is given up" {
	fault ignore-range cut=150000
	run as timeout 60 "$AK" image pull --quiet "$FAULTY/big:1"
	fails_with 125 "after 6 attempts"
	[ "$(requests '/blobs/')" -le 16 ]
}

configure() {
	mkdir -p "$SHARED/home/.config/agentkernel"
	echo "$1" >"$SHARED/home/.config/agentkernel/config.toml"
	give -R "$SHARED/home/.config"
}

# bats test_tags=once
@test "a pull that takes longer than it may is ended, and the next goes on" {
	configure "[registries.\"$FAULTY\"]
timeout = \"2s\""
	fault slow=50000
	run as timeout 60 "$AK" image pull --quiet "$FAULTY/big:1"
	fails_with 125 "no complete answer within 2s"
	fault
	pull big:1
	[ "$(requests 'range=bytes=[1-9]')" -eq 1 ]
	configure '[registries."registry.example.org"]
timeout = "soon"'
	run pull two:1
	fails_with 125 "config.toml:2:11: duration 'soon'"
	rm -r "$SHARED/home/.config"
}

# A registry at a public address, in its own network: it redirects blobs to $1, and requires a token
# from REALM.
public_registry() {
	unshare --net -- bash -c '
		ip link set lo up && ip address add 93.184.216.34/32 dev lo && ip address add 10.9.8.7/32 dev lo &&
		ip address add 93.184.216.35/32 dev lo || exit 1
		python3 -I -c "
import hashlib, http.server, json, sys, threading
layer = open(sys.argv[2], \"rb\").read(); config = open(sys.argv[3], \"rb\").read()
name = lambda b: \"sha256:\" + hashlib.sha256(b).hexdigest()
manifest = json.dumps({\"schemaVersion\": 2, \"mediaType\": \"application/vnd.oci.image.manifest.v1+json\",
    \"config\": {\"mediaType\": \"application/vnd.oci.image.config.v1+json\", \"digest\": name(config), \"size\": len(config)},
    \"layers\": [{\"mediaType\": \"application/vnd.oci.image.layer.v1.tar\", \"digest\": name(layer), \"size\": len(layer)}]}).encode()
things = {name(layer): layer, name(config): config}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        last = self.path.rsplit(\"/\", 1)[1]
        print(self.server.server_address[0], self.path, file=sys.stderr, flush=True)
        if sys.argv[5] and self.server.server_address[0] == \"93.184.216.34\" and \"Authorization\" not in self.headers:
            self.send_response(401); self.send_header(\"WWW-Authenticate\", \"Bearer realm=\\\"http://\" + sys.argv[5] + \":5000/token\\\"\"); self.send_header(\"Content-Length\", \"0\"); self.end_headers(); return
        if self.path.startswith(\"/token\"): things[self.path.rsplit(\"/\", 1)[1]] = b\"{\\\"token\\\":\\\"abcd\\\"}\"
        if last in things and self.server.server_address[0] == \"93.184.216.34\":
            self.send_response(307); self.send_header(\"Location\", \"http://\" + sys.argv[1] + \":5000\" + self.path); self.send_header(\"Content-Length\", \"0\"); self.end_headers(); return
        body = things.get(last, manifest)
        self.send_response(200); self.send_header(\"Content-Type\", \"application/vnd.oci.image.manifest.v1+json\")
        self.send_header(\"Content-Length\", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
servers = [http.server.ThreadingHTTPServer((a, 5000), Handler) for a in (\"93.184.216.34\", \"93.184.216.35\", \"10.9.8.7\", \"127.0.0.1\")]
for s in servers: threading.Thread(target=s.serve_forever).start()
open(sys.argv[4], \"w\").close()" "$1" "$2" "$3" "$4/ready" "${REALM:-}" 2>"$4/asked" 3>&- &
		server=$!
		for _ in $(seq 200); do [ ! -e "$4/ready" ] || break; sleep 0.05; done
		shift 4
		"$@"
		result=$?
		kill "$server"
		exit $result' - "$1" "$SHARED/base.tar" "$W/config" "$W" "${@:2}"
}

# bats test_tags=once
@test "a public registry's redirect to a private address is refused unless the file allows it" {
	id=$(sha256sum "$SHARED/base.tar" | cut -d ' ' -f 1)
	printf '{"architecture":"%s","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
		"$(dpkg --print-architecture)" "$id" >"$W/config"
	settings='[registries."93.184.216.34:5000"]
insecure = true'
	configure "$settings"
	pull=(env HOME="$SHARED/home" AGENTKERNEL_HOME="$W/state" "$AK" image pull -q 93.184.216.34:5000/x:1)
	for place in 10.9.8.7 127.0.0.1; do
		run public_registry "$place" "${pull[@]}"
		fails_with 125 "it leads to $place, which is not a public address as the registry's is"
		grep -q "^93.184.216.34 .*/blobs/" "$W/asked"
		run grep "^$place " "$W/asked"
		[ "$status" -eq 1 ]
		rm -f "$W/ready"
	done
	REALM=10.9.8.7 run public_registry 93.184.216.35 "${pull[@]}"
	fails_with 125 "its token service: it leads to 10.9.8.7, which is not a public address"
	run grep "^10.9.8.7 " "$W/asked"
	[ "$status" -eq 1 ]
	rm -f "$W/ready"
	REALM=93.184.216.35 run public_registry 93.184.216.35 "${pull[@]}" # control: another public address
	[ "$status" -eq 0 ]
	grep -q "^93.184.216.35 /token" "$W/asked"
	rm -rf "$W/ready" "$W/state"
	configure "$settings
private-redirects = true"
	run public_registry 10.9.8.7 "${pull[@]}"
	[ "$status" -eq 0 ]
	grep -q "^10.9.8.7 .*/blobs/" "$W/asked"
	rm -r "$SHARED/home/.config"
}

# bats test_tags=once
@test "a manifest without end and headers without end are refused" {
	fault endless-body
	refuses "sends more than 4194304 bytes for the tag '1' of 'four'"
	fault endless-headers
	refuses "header"
}

# bats test_tags=once
@test "an unreachable registry is named" {
	run ak image pull --quiet 127.0.0.1:9/x:1
	fails_with 125 "127.0.0.1:9"
	store_is_empty
}

# ---- credentials ----

# bats test_tags=once
@test "credentials do not follow a redirect to another host" {
	login
	for kind in basic=ann:secret token=ann:secret; do
		for host in 127.0.0.1 localhost; do
			fault "$kind" "redirect=$host"
			STATE=$W/$kind-$host pull
			[ "$(requests '^other GET .*auth=none')" -ge 5 ]
			[ "$(requests '^other .*auth=[^n]')" -eq 0 ]
			# the registry itself did get them
			[ "$(requests '^main GET .*/blobs/.*auth=b')" -ge 5 ]
		done
	done
}

# bats test_tags=once
@test "a redirect's target that asks for credentials gets none" {
	login
	fault basic=ann:secret redirect other-denies
	run pull
	[ "$status" -eq 125 ]
	[ "$(requests '^other GET .* 401 auth=none')" -ge 1 ]
	[ "$(requests '^other .*auth=[^n]')" -eq 0 ]
	[ "$(requests '^main .*auth=basic')" -ge 1 ]
	store_is_empty
}

# bats test_tags=once
@test "a token that runs out on the way is asked for again" {
	login
	fault token=ann:secret,2 # for the manifest and the config
	pull one:1
	[ "$(requests 'GET /token')" -eq 2 ]
}

# bats test_tags=once
@test "a realm whose answer is too deep, too long or an error is refused" {
	login
	fault token=ann:secret token-deep
	refuses token
	fault token=ann:secret token-size=100000
	refuses token
	fault token=ann:secret token-status=403,1000
	refuses 403
}

# ---- killed ----

@test "killed at any moment, the next pull goes on and prune leaves a clean store" {
	fault
	took=10000
	for _ in 1 2 3; do
		rm -rf "$W/clean"
		start=$(date +%s%N)
		STATE=$W/clean pull two:1
		now=$((($(date +%s%N) - start) / 1000000))
		[ "$now" -ge "$took" ] || took=$now
	done
	STATE=$W/clean store_list >"$W/clean.list"
	STATE=$W/empty ak image prune -q
	STATE=$W/empty store_list >"$W/empty.list"
	cat >"$W/kill.py" <<-'PY'
	import os, signal, subprocess, sys, time
	p = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
	    stderr=subprocess.DEVNULL, start_new_session=True)
	time.sleep(float(sys.argv[1]) / 1000)
	if "one" in os.environ.get("KILL", ""):
	    p.kill() # the launcher alone: its helper must end by itself
	else:
	    try:
	        os.killpg(p.pid, signal.SIGKILL)
	    except ProcessLookupError:
	        pass
	print(p.wait())
	PY
	killed=0
	step=1
	[ "${AS:-root}" = root ] || step=3 # the caller makes little difference to the moment
	for i in $(seq 1 $step 20); do
		kind=all
		[ $((i % 4)) -ne 0 ] || kind=one
		run as env KILL=$kind python3 "$W/kill.py" $((i * took / 20)) "$AK" image pull -q "$FAULTY/two:1"
		[ "$output" != -9 ] || killed=$((killed + 1))
		if [ $((i % 2)) -eq 0 ]; then # leftovers are garbage, unless the pull completed
			ak image prune -q
			store_list >"$W/list"
			[ -s "$W/list" ] && { cmp -s "$W/empty.list" "$W/list" || diff "$W/clean.list" "$W/list"; }
		fi
		pull two:1 >/dev/null || { echo "moment $i"; false; }
		[ "$(ak run --pull never --image "$FAULTY/two:1" wc -c /opt/1)" = "200000 /opt/1" ]
		ak image prune -q
		store_list >"$W/list"
		diff "$W/clean.list" "$W/list" || { echo "moment $i"; false; }
		ak image remove -q "$FAULTY/two:1"
		store_is_empty
		[ -z "$(find "$W/state/images/blobs" -type f)" ]
	done
	[ "$killed" -ge 3 ] || { echo "only $killed were killed in time"; false; }
}

@test "a pull that is interrupted ends at once and says nothing wrong" {
	fault slow=20000
	run as timeout -s INT 1 "$AK" image pull --quiet "$FAULTY/one:1"
	[ "$status" -eq 124 ] || [ "$status" -eq 130 ]
	for _ in $(seq 30); do
		pgrep -f "^agentkernel-image pull store=$W/" >/dev/null || break
		sleep 0.1
	done
	run ! pgrep -f "^agentkernel-image pull store=$W/"
	fault
	pull one:1
}

# ---- disk full ----

# make_small KILOBYTES: a small file system for the store
make_small() {
	[ "$(id -u)" -eq 0 ] || skip "mounting a small file system needs root"
	SMALL=$W/small STATE=$W/small
	mkdir "$SMALL"
	mount -t tmpfs -o "size=${1}k,mode=755" agentkernel-test "$SMALL"
	give "$SMALL"
}

@test "a disk that is full while a layer arrives, or while it is unpacked: said so, nothing half-there, then it goes on" {
	for size in 700 2600; do
		fault
		make_small "$size"
		refuses "No space left on device"
		[ -z "$(find "$SMALL"/images/layers/*/making "$SMALL/images/names" "$SMALL/images/records" -mindepth 1)" ]
		# with free space again
		mount -o remount,size=20000k "$SMALL"
		pull
		ak run --image "$FAULTY/four:1" true
		umount "$SMALL" 2>/dev/null || umount -l "$SMALL"
		SMALL=
		rmdir "$W/small"
	done
}

@test "a disk that is full while an archive is loaded or imported: said so, and nothing half-there" {
	make_small 2600
	run ak image import -q full "$SHARED/base.tar"
	fails_with 125 "No space left on device"
	store_is_empty
	run ak image load -q --name full:1 "$SHARED/layout"
	[ "$status" -eq 125 ]
	store_is_empty
	tar -C "$SHARED/layout" -cf "$W/layout.tar" .
	run ak image load -q "$W/layout.tar"
	fails_with 125 "No space left on device"
	store_is_empty
}

@test "unpacking leaves a reserve on the file system" {
	make_small 100000 # of which 2 %, 2000k, are reserved
	rm -rf "$W/tree"
	mkdir "$W/tree"
	head -c 101000000 /dev/zero | tr '\0' x >"$W/tree/large"
	tar -C "$W/tree" -cf "$W/large.tar" .
	image large "$W/large.tar" && push large large:1
	fault
	run pull large:1
	fails_with 125 "leave 1.9 MiB free for others: No space left on device"
	[ "$(df --output=avail -k "$SMALL" | tail -1)" -gt 2000 ]
	store_is_empty
	mount -o remount,size=220000k "$SMALL"
	pull large:1
}
