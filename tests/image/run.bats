#!/usr/bin/env bats
# What a command of an image gets and may do, and which image is used.
load helpers
bats_require_minimum_version 1.5.0

setup_file() {
	export STATE CANARY
	setup_shared || return 1
	STATE=$SHARED/home/state CANARY=$SHARED/canary
	mkdir -m 777 "$CANARY"
	echo canary >"$CANARY/file"
	chmod 666 "$CANARY/file"
	make_base && cd "$SHARED" && make_images
}

CONFIG='{"Env":["PATH=/opt/own:/bin","GREETING=hello world","EMPTY="],"User":"app","WorkingDir":"/made/up",
	"Entrypoint":["echo","entry"],"Cmd":["one","two"]}'

make_images() {
	image conf:1 --config "$CONFIG" base.tar
	image plain:1 base.tar
	image cmd:1 --config '{"Cmd":["echo","by itself"]}' base.tar
	image user:1 --config '{"User":"4321:55"}' base.tar
	image nobody:1 --config '{"User":"nosuch"}' base.tar
	make_layers
	image layers:1 base.tar lower.tar upper.tar
	make_links
	image links:1 base.tar links.tar
	image places:1 base.tar places.tar
	image etc:1 base.tar etc.tar
	W=$SHARED
	cd "$SHARED/home" && ak image load -q "$SHARED/layout" >/dev/null
}

# Two layers: the upper one has only its changes, not the directories above.
make_layers() {
	mkdir -p lower/{d,opaque/sub,swap,closed,both} upper/{d,opaque,tmp,closed,both}
	echo lower | tee lower/d/{keep,gone,changed} lower/opaque/a lower/opaque/sub/b lower/swap/f lower/both/x lower/plain >/dev/null
	chmod 751 lower/closed
	chown 1234:55 lower/closed
	touch -d '2001-02-03 04:05:06' lower/closed
	tar -C lower --numeric-owner --format=posix -cf lower.tar .
	echo upper | tee upper/d/changed upper/opaque/new upper/tmp/x upper/closed/y upper/swap upper/both/y >/dev/null
	touch upper/d/.wh.gone upper/opaque/.wh..wh..opq upper/both/.wh.x
	rm -rf upper/plain
	mkdir upper/plain
	echo upper >upper/plain/f
	tar -C upper --numeric-owner --format=posix -cf upper.tar d/changed d/.wh.gone opaque/new opaque/.wh..wh..opq tmp/x \
		closed/y swap plain both/.wh.x both/y
}

# Links in the place of the sandbox's own files or mounts.
make_links() {
	mkdir -p links/etc places etc/etc-of-its-own
	ln -s "$CANARY/file" links/etc/resolv.conf
	ln -s "../../../../../../../..$CANARY/file" links/etc/hosts
	ln -s /etc/passwd links/etc/hostname
	tar -C links -cf links.tar etc
	for name in proc dev tmp run sys; do
		ln -s "$CANARY" "places/$name"
	done
	tar -C places -cf places.tar proc dev tmp run sys
	echo readme >etc/etc-of-its-own/readme
	printf 'root:x:0:0:root:/root:/bin/sh\nown:x:77:77::/own:/bin/sh\n' >etc/etc-of-its-own/passwd
	ln -s etc-of-its-own etc/etc
	tar -C etc -cf etc.tar etc-of-its-own etc
}

# inside IMAGE COMMAND...: without the image's entrypoint
inside() {
	local image=$1
	shift
	ak run --pull never --image "$image" --entrypoint "" "$@"
}

# ---- what is executed ----

@test "the image's entrypoint and command run, and a typed command replaces the second" {
	run -0 ak run --image conf:1
	says "entry one two"
	run -0 ak run --image conf:1 three
	says "entry three"
	run -0 ak run --image cmd:1
	says "by itself"
	run -0 ak run --image cmd:1 echo other
	says other
}

@test "--entrypoint replaces the image's and its command, \"\" drops both" {
	run -0 ak run --image conf:1 --entrypoint pwd
	says /made/up
	run -0 ak run --image conf:1 --entrypoint echo x y
	says "x y"
	run -0 ak run --image conf:1 --entrypoint "" echo z
	says z
	run ak run --image conf:1 --entrypoint ""
	fails_with 125 "the image does not say what to run"
	run ak run --image plain:1
	fails_with 125 "the image does not say what to run"
	run ak run --image host --entrypoint echo x
	fails_with 125 "--entrypoint needs an image"
}

@test "a program that the image does not have is 127, though this machine has it" {
	command -v python3
	run -127 ak run --image plain:1 python3 -c 'print(1)'
}

# ---- environment, user, directory ----

@test "Env comes from the image, and -e wins over it" {
	run -0 inside conf:1 sh -c 'echo "$GREETING,$PATH,${EMPTY-unset},$HOME"'
	says "hello world,/opt/own:/bin,,/home/app"
	run -0 ak run --image conf:1 --entrypoint "" -e GREETING=bye -e HOME=/x sh -c 'echo "$GREETING,$HOME"'
	says "bye,/x"
	CANARY_VARIABLE=secret run -0 inside conf:1 env
	[[ "$output" != *CANARY_VARIABLE* ]]
}

@test "User is looked up in the image's own files, by name and number, with its groups" {
	groups=",55"
	has_many_ids || groups="" # with a single id there are no other groups
	run -0 inside conf:1 sh -c 'echo $(id -u):$(id -g):$(id -G | tr " " ,)'
	says "1234:1234:1234$groups"
	run -0 inside user:1 sh -c 'echo $(id -u):$(id -g):$(id -G | tr " " ,)'
	says 4321:55:55
	run inside nobody:1 true
	fails_with 125 "no user 'nosuch' inside"
}

@test "-u wins over User, as name, number, name:group" {
	while read -r user expected; do
		run -0 ak run --image conf:1 --entrypoint "" -u "$user" sh -c 'echo $(id -u):$(id -g):$HOME'
		says "$expected"
	done <<-END
	root 0:0:/root
	app 1234:1234:/home/app
	app:extra 1234:55:/home/app
	0 0:0:/root
	1234 1234:1234:/home/app
	4321 4321:0:/
	77:88 77:88:/
	END
	run ak run --image conf:1 -u nosuch true
	fails_with 125 "--user: no user 'nosuch' inside"
	run ak run --image conf:1 -u app:nosuch true
	fails_with 125 "nosuch"
}

@test "users of this machine are not users of the image" {
	local name
	name=$(awk -F: '$3 > 0 && $3 < 1000 && $1 != "nobody" { print $1; exit }' /etc/passwd)
	run ak run --image conf:1 -u "$name" true
	fails_with 125 "no user '$name' inside"
}

@test "WorkingDir is made where it is missing, belongs to the user, and -w wins" {
	run -0 inside conf:1 sh -c 'pwd; touch mine && stat -c %U:%G . mine'
	says "/made/up
app:app
app:app"
	run -0 ak run --image conf:1 --entrypoint "" -w /opt/new/deep sh -c 'pwd; touch mine'
	says /opt/new/deep
	run -0 inside plain:1 pwd
	says /
}

# ---- the root ----

@test "/etc/hosts, hostname and resolv.conf are the sandbox's own" {
	run -0 inside plain:1 sh -c 'cat /etc/hostname; hostname; grep -c localhost /etc/hosts; grep -c nameserver /etc/resolv.conf'
	says "sandbox
sandbox
2
1"
}

@test "links of the image in their places are replaced, never followed" {
	before=$(find "$CANARY" -printf '%p %y %s %T@\n')
	run -0 inside links:1 sh -c 'cat /etc/hostname; for f in hosts hostname resolv.conf; do test -L /etc/$f && echo $f is a link; done; grep -c : /etc/passwd; cat /etc/hosts | grep -c localhost'
	says "sandbox
4
2"
	[ "$(find "$CANARY" -printf '%p %y %s %T@\n')" = "$before" ]
	[ "$(cat "$CANARY/file")" = canary ]
}

@test "links in place of proc, dev, tmp and run lead to nothing outside" {
	needs_kernel 6.6 "a tmpfs with user attributes, to replace what an image has"
	before=$(find "$CANARY" -printf '%p %y %s %T@\n')
	run -0 inside places:1 sh -c 'test -d /proc/self && test -c /dev/null && echo ok; test ! -L /proc && test ! -L /dev && echo real; cat /tmp/file 2>/dev/null; echo x >/tmp/file; echo x >/run/file; true'
	[ "${lines[0]}" = ok ] && [ "${lines[1]}" = real ]
	[[ "$output" != *canary* ]]
	[ "$(find "$CANARY" -printf '%p %y %s %T@\n')" = "$before" ]
}

@test "an image whose /etc is a link works, and its users are found" {
	run -0 inside etc:1 sh -c 'cat /etc/hostname; test -e /etc/readme && echo its own'
	says "sandbox
its own"
}

@test "upper layers hide, replace and join what is below" {
	run -0 inside layers:1 sh -c 'cd /d && ls | tr "\n" " "; cat changed keep | tr "\n" " "; ls /opaque /both | tr "\n" " "; cat /swap /plain/f | tr "\n" " "'
	says "changed keep upper lower /both: y  /opaque: new upper upper "
}

@test "directories that a layer only implies keep what the lower layer gave them" {
	owner=1234:55
	has_many_ids || owner=0:0 # one user owns all files
	run -0 ak run --image layers:1 -u 0 sh -c 'stat -c "%a" /tmp; stat -c "%a %u:%g %Y" /closed; ls /closed /tmp | tr "\n" " "'
	says "1777
751 $owner $(date -d '2001-02-03 04:05:06' +%s)
/closed: y  /tmp: x "
}

@test "a directory that is removed and made again is empty" {
	needs_kernel 6.6 "a tmpfs with user attributes, to replace what an image has"
	run -0 ak run --image layers:1 -u 0 sh -c 'rm -rf /d /opaque && mkdir /d /opaque && ls -A /d /opaque | tr "\n" " "'
	says "/d:  /opaque: "
}

# ---- writing ----

# A checksum of all layers, with contents, owners and change times.
layer_sums() {
	(cd "$STATE/images/layers" && find . -printf '%p %y %m %U:%G %s %T@ %C@ %l\n' | LC_ALL=C sort &&
		find . -type f -exec sha256sum {} + | LC_ALL=C sort) | sha256sum
}

@test "what is written is private, vanishes, and leaves the layers as they were" {
	needs_kernel 6.6 "a tmpfs with user attributes, to replace what an image has"
	before=$(layer_sums)
	run -0 ak run --image layers:1 -u 0 sh -c 'echo mine >/d/keep; rm -r /opaque /bin/vi; chmod 700 /tmp; touch -d 2000-01-01 /etc/passwd; echo x >>/etc/passwd; ln /d/keep /d/second; mkdir /new; cat /d/keep /d/second'
	says "mine
mine"
	run -0 inside layers:1 sh -c 'cat /d/keep; ls -d /new /d/second 2>/dev/null; ls /opaque; stat -c %a /tmp; wc -l </etc/passwd; ls /bin/vi'
	says "lower
new
1777
4
/bin/vi"
	[ "$(layer_sums)" = "$before" ]
}

@test "two sandboxes of one image at once do not see each other's files" {
	local pids=()
	mkfifo "$W/first" "$W/second"
	give "$W/first" "$W/second"
	for name in first second; do
		as sh -c "'$AK' run --image plain:1 -w /opt sh -c 'echo $name >own; read go; cat own; ls' <'$W/$name'" >"$W/$name.out" 3>&- &
		pids+=($!)
	done
	exec 5>"$W/first" 6>"$W/second"
	sleep 0.3
	echo go >&5
	echo go >&6
	wait "${pids[@]}"
	exec 5>&- 6>&-
	[ "$(cat "$W/first.out")" = $'first\nown' ] && [ "$(cat "$W/second.out")" = $'second\nown' ]
}

@test "with a read-only root nothing of the image can be changed" {
	run inside plain:1 sh -c 'touch /x'
	[ "$status" -eq 0 ]
	run ak run -p restrictive --image plain:1 sh -c 'touch /x; touch /etc/passwd; rm /bin/vi; touch /tmp/x && echo tmp'
	says "touch: /x: Read-only file system
touch: /etc/passwd: Read-only file system
rm: can't remove '/bin/vi': Read-only file system
tmp"
}

@test "chown to other users works where there are ids for them, and changes nothing where not" {
	run ak run --image plain:1 -u 0 sh -c 'touch /f && chown 1234:55 /f && stat -c %u:%g /f'
	if has_many_ids; then
		says 1234:55
	else
		says 0:0
	fi
	run -0 ak run --image plain:1 -u 0 sh -c 'stat -c %u /home/app; chmod 4711 /bin/busybox && stat -c %a /bin/busybox; mkfifo /p && test -p /p && echo fifo'
	owner=1234
	has_many_ids || owner=0
	says "$owner
4711
fifo"
}

@test "no device can be made, not even a whiteout" {
	run ak run --image plain:1 -u 0 sh -c 'mknod /n c 1 3; mknod /b b 8 0; mknod /w c 0 0; ls /n /b /w 2>/dev/null'
	says "mknod: /n: Operation not permitted
mknod: /b: Operation not permitted
mknod: /w: Operation not permitted"
}

@test "the store cannot be reached from inside" {
	run -0 ak run --image plain:1 -u 0 sh -c "ls -d '$STATE' '$SHARED' 2>&1; grep -c '$SHARED' /proc/self/mountinfo; true"
	[ "${lines[-1]}" = 0 ]
	[[ "$output" == *"No such file"* ]]
}

@test "the image's files are not this machine's" {
	run -0 inside plain:1 sh -c 'cat /etc/passwd | wc -l; ls /usr/bin | wc -l'
	says "4
0"
}

# ---- which image ----

# Without any connection: requests to a registry fail at once.
offline() {
	as env https_proxy=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9 "$AK" "$@"
}

# in_store NAME...: images that contain their names
in_store() {
	local name
	for name; do
		mkdir -p "$W/mark/etc"
		echo "$name" >"$W/mark/etc/image"
		tar -C "$W/mark" -cf "$W/mark.tar" etc/image
		tar -Af "$W/mark.tar" "$SHARED/base.tar"
		STATE=$W/state ak image import -q "$name" "$W/mark.tar" >/dev/null
	done
}

@test "a detected image that cannot be had gives way to this machine's program, with one line that says so" {
	STATE=$W/state run --separate-stderr -0 offline run python3 -c 'print(6*7)'
	says 42
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ "$stderr" == "agentkernel: image 'python:3.12-alpine': "*"; running this machine's own 'python3' (--image host does so at once)" ]]
	# and is not tried again for a while
	start=$(date +%s%N)
	STATE=$W/state run --separate-stderr -0 offline run python3 -c 'print(6*7)'
	[ $((($(date +%s%N) - start) / 1000000)) -lt 1500 ]
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ "$stderr" == *"could not be pulled recently"* ]]
}

@test "an image that was asked for never gives way" {
	STATE=$W/state run offline run --image python:3.12-alpine python3 -c 'print(6*7)'
	fails_with 125 "image 'python:3.12-alpine': "
	STATE=$W/state run offline run --image "" --pull never python3 -c 'print(6*7)'
	[ "$status" -eq 125 ]
	STATE=$W/state run as env AGENTKERNEL_IMAGE=127.0.0.1:9/x:1 "$AK" run python3 -c 'print(6*7)'
	[ "$status" -eq 125 ]
	[[ "$output" == *"127.0.0.1:9"* ]]
}

@test "the command and the project's files choose an image that is in the store" {
	in_store alpine:3.20 node:22-alpine gcc:14-bookworm
	STATE=$W/state run -0 offline run sh -c 'cat /etc/image'
	says alpine:3.20
	STATE=$W/state run -0 offline run --json sh -c 'true'
	[ "$(json image)" = alpine:3.20 ]
	mkdir "$W/project"
	cd "$W/project"
	touch Makefile
	STATE=$W/state run -0 offline run cat /etc/image
	says gcc:14-bookworm
	touch package.json # takes precedence over a Makefile
	STATE=$W/state run -0 offline run cat /etc/image
	says node:22-alpine
	STATE=$W/state run -0 offline run sh -c 'cat /etc/image' # the command takes precedence over the project
	says alpine:3.20
}

@test "AGENTKERNEL_IMAGE chooses, --image wins over it, host is this machine" {
	in_store alpine:3.20 one:1 two:1
	export STATE=$W/state
	run -0 as env AGENTKERNEL_IMAGE=one:1 "$AK" run sh -c 'cat /etc/image'
	says one:1
	run -0 as env AGENTKERNEL_IMAGE=one:1 "$AK" run --image two:1 sh -c 'cat /etc/image'
	says two:1
	run -0 as env AGENTKERNEL_IMAGE=host "$AK" run sh -c 'test ! -e /etc/image && echo host'
	says host
	run -0 ak run --image host sh -c 'test ! -e /etc/image && echo host'
	says host
}

@test "without a command, a file or a name that decides, it is this machine" {
	STATE=$W/state run --separate-stderr -0 offline run true
	[ -z "$stderr" ]
	[ ! -e "$W/state/images/unreachable" ]
}

@test "a detected image does not add its entrypoint to the command" {
	(cd "$W" && python3 "$TOP/tests/image/oci.py" image layout alpine:3.20 --config '{"Entrypoint":["echo","entry"]}' "$SHARED/base.tar")
	export STATE=$W/state
	ak image load -q "$W/layout" >/dev/null
	run -0 offline run sh -c 'echo typed'
	says typed
	run -0 ak run --image alpine:3.20 sh
	says "entry sh"
}

# The limit is 64 per user inside: two users together exceed the account's limit on a machine with
# the kernel's default of 128, and the kernel counts the users of a namespace for its creator too.
@test "many users inside do not use up the caller's own inotify instances" {
	has_many_ids || skip "one id: its share is a part of the account's"
	cp "$BUILD/probe" "$W/probe"
	account=$(cat /proc/sys/fs/inotify/max_user_instances)
	[ "$account" -le 1024 ] || skip "the account may have $account"
	ak run --image plain:1 --pids 200 -v "$W/probe:/probe:ro" /probe watch-as-users "$((account / 64 + 2))" 10 >"$W/taken" 3>&- &
	run=$!
	wait_for_line "$W/taken" took
	run -0 as python3 -c '
import ctypes
libc = ctypes.CDLL(None)
print([libc.inotify_init1(0) >= 0 for _ in range(8)])'
	kill "$run"
	wait "$run" || true
	says "[True, True, True, True, True, True, True, True]"
	[ "$(sed 's/took //' "$W/taken")" -ge 64 ]
}
