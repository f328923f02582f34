#!/usr/bin/env bats
# What a sandbox of the host image sees of /etc: files that any user of this machine may read, and
# no secret.
load helpers
bats_require_minimum_version 1.5.0

setup() {
	only_host
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	[ "${AS:-root}" != user ] || chown 12345:12345 "$W"
	cd "$W" || return 1
}

# in_other_etc COMMAND...: with this machine's /etc plus the files of plant(), in a private mount
# namespace
in_other_etc() {
	mkdir -p "$W/etc" "$W/upper" "$W/work-dir"
	export -f plant as ak 2>/dev/null || true
	unshare --mount --propagation private bash -c '
		mount -t overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work-dir" none /etc && cd /etc && plant && cd "$1" && shift && "$@"' \
		- "$W" "$@"
}

SUSPECTS="shadow shadow- gshadow passwd- subuid sudoers sudoers.d/me ssh/ssh_host_ed25519_key ssl/private/key.pem letsencrypt/live/key.pem
	krb5.keytab crypttab wireguard/wg0.conf openvpn/client.conf ipsec.secrets ppp/chap-secrets NetworkManager/system-connections/home
	netplan/01.yaml wpa_supplicant/wpa.conf fstab samba/smb.conf cloud/cloud.cfg boto.cfg docker/daemon.json kubernetes/admin.conf
	rancher/k3s/k3s.yaml vault.d/vault.hcl environment default/app systemd/system/app.service cron.d/app mysql/debian.cnf
	postgresql/pg_service.conf redis/redis.conf sssd/sssd.conf postfix/sasl_passwd msmtprc apt/auth.conf.d/private netrc passwd-s3fs
	security/opasswd machine-info"

@test "secrets and identity of the host do not show, even where everybody may read them" {
	plant() {
		for name in $SUSPECTS; do
			mkdir -p "$(dirname "$name")" && echo canary-of-the-host >"$name" && chmod 644 "$name" || return 1
		done
		chmod -R a+rX . 2>/dev/null
		for name in hosts hostname machine-id passwd group resolv.conf; do echo canary-of-the-host >"$name" || return 1; done
	}
	export SUSPECTS
	run in_other_etc as sh -c "cat /etc/shadow; '$AK' run grep -rs canary-of-the-host /etc; '$AK' run sh -c 'ls -d $(printf '/etc/%s ' $SUSPECTS)' 2>/dev/null"
	says canary-of-the-host # which the caller can read
	in_other_etc as sh -c "'$AK' create kept && '$AK' start kept"
	run in_other_etc ak exec kept grep -rs canary-of-the-host /etc /.etc
	ak remove -f kept
	says ""
}

@test "what any user may read shows, and is the host's" {
	plant() {
		mkdir -p someprogram/conf.d && echo setting >someprogram/conf.d/a.conf && ln -s ../usr/lib/os-release linked
	}
	run in_other_etc ak run sh -c 'cat /etc/someprogram/conf.d/a.conf; grep -c . /etc/linked; getent protocols tcp; echo changed >/etc/someprogram/conf.d/a.conf'
	[[ "$output" == "setting"*"tcp "*"6"* ]]
	[ "$(cat "$W/upper/someprogram/conf.d/a.conf")" = setting ]
}

@test "what only the caller may read does not show" {
	plant() {
		echo own-secret >own && echo own-secret >team && mkdir -p -m 750 closed && echo own-secret >closed/file &&
			chown 12345:12345 own closed && chmod 600 own && chown 0:12345 team && chmod 640 team && chmod 644 closed/file
	}
	run in_other_etc as sh -c "cat /etc/own; '$AK' run sh -c 'cat /etc/own /etc/team /etc/closed/file'"
	# the caller can read them: a user by its id and group, root because it is root
	[[ "$output" == "own-secret"* ]]
	[ "$(grep -c own-secret <<<"$output")" -eq 1 ]
	in_other_etc as sh -c "'$AK' create kept && '$AK' start kept"
	run in_other_etc ak exec kept sh -c 'cat /etc/own /.etc/own /.etc/team /.etc/closed/file'
	ak remove -f kept
	! grep -q own-secret <<<"$output"
}

@test "what was kept of an earlier /etc does not show what only the caller may read in a later one" {
	[ "${AS:-root}" = user ] || skip "what is mapped for root's sandboxes cannot read it anyway"
	plant() { :; }
	as mkdir -m 700 "$W/runtime"
	# shellcheck disable=SC2016 # for the other shell
	run in_other_etc bash -c 'runs() { as env XDG_RUNTIME_DIR="$0/runtime" "$AK" run sh -c "$1"; }
		runs true && [ -n "$(ls "$0/runtime/agentkernel/etc")" ] && install -o 12345 -m 600 /dev/stdin /etc/later <<<later-secret &&
		as cat /etc/later && runs "cat /etc/later; echo ended"' "$W"
	[[ "$output" == *ended* ]] || { echo "$output"; return 1; }
	[ "$(grep -c later-secret <<<"$output")" -eq 1 ] # the caller's own
}

@test "accounts of packages show, those of people do not" {
	plant() {
		echo 'alice:x:1500:1500:Alice,,,:/home/alice:/bin/bash' >>passwd && echo 'sometool:x:350:350:tool:/var/lib/sometool:/usr/sbin/nologin' >>passwd &&
			echo 'sometool:x:350:alice' >>group && echo 'alice:x:1500:' >>group &&
			printf '%s\n' toor:x:0:0::/root:/bin/sh user:x:351:351::/:/bin/sh +nis:x:352:352::/:/bin/sh broken:x:353x:353::/:/bin/sh >>passwd
	}
	run in_other_etc ak run sh -c 'cat /etc/passwd /etc/group'
	[[ "$output" == *"sometool:*:350:350::/var/lib/sometool:/usr/sbin/nologin"* ]]
	[[ "$output" == *"sometool:x:350:"* ]]
	[[ "$output" != *alice* ]] && [[ "$output" != *Alice* ]]
	# names and numbers of our own, and what is no account
	[[ "$output" != *toor* && "$output" != *:351:* && "$output" != *nis* && "$output" != *broken* ]]
}

@test "a bind mount in /etc, as in a container, changes nothing for root" {
	only_root
	run unshare --mount --propagation private bash -c "mount --bind /etc/hosts /etc/hosts && mount --bind /etc/passwd /etc/passwd &&
		env AGENTKERNEL_HOME='$SHARED/home/state' '$AK' run -i host sh -c 'cat /etc/protocols; cat /etc/hosts'"
	[[ "$output" == "$(cat /etc/protocols)"*"127.0.0.1 localhost sandbox"* ]]
}

@test "a socket or fifo in /etc leads nowhere" {
	plant() {
		mkfifo -m 666 pipe && mkdir -m 755 talk &&
			python3 -c 'import os, socket; s = socket.socket(socket.AF_UNIX); s.bind("/etc/talk/socket"); os.chmod("/etc/talk/socket", 0o666); s.listen(); os.fork() or (s.accept(), os._exit(0))' 3>&- &
		until [ -S talk/socket ]; do sleep 0.05; done
		# the host can connect, once: that ends the listener
		trap 'python3 -c "import socket; socket.socket(socket.AF_UNIX).connect(\"/etc/talk/socket\")"' EXIT
	}
	run in_other_etc ak run python3 -c '
import os, socket
try:
    socket.socket(socket.AF_UNIX).connect("/etc/talk/socket")
    print("connected")
except OSError as e:
    print(type(e).__name__)
print(os.path.exists("/etc/pipe") and open("/etc/pipe", "rb", opener=lambda p, f: os.open(p, f | os.O_NONBLOCK)).read())'
	[[ "$output" != *connected* ]]
}

@test "/etc is the sandbox's to write, unless the root is read-only" {
	run ak run sh -c 'echo mine >/etc/new && rm /etc/services && mkdir /etc/dir && cat /etc/new && ls /etc/services'
	[[ "$output" == mine*"No such file"* ]]
	[ -e /etc/services ]
	run ak run -p restrictive sh -c 'echo mine >/etc/new'
	[[ "$output" == *"Read-only file system"* ]]
}

@test "a named sandbox keeps its own files in /etc and sees the host's" {
	ak create stays
	ak start stays
	ak exec stays sh -c 'echo mine >/etc/new; rm /etc/services; cat /etc/protocols' >"$W/out"
	cmp /etc/protocols "$W/out"
	ak restart stays
	run ak exec stays sh -c 'cat /etc/new; ls /etc/services; wc -l </etc/protocols'
	ak remove -f stays
	[[ "$output" == mine*"No such file"*"$(wc -l </etc/protocols)" ]]
}

@test "what hides names stays while a sandbox runs, however often /etc changes meanwhile" {
	plant() {
		mkdir -p ssl/private && echo canary-of-the-host | tee shadow >ssl/private/key.pem
	}
	# each change of /etc makes a layer of its own, of which few are kept
	changes() {
		"$AK" run sh -c 'ls /etc | sort; echo; read -r _; ls /etc | sort; cat /etc/shadow /etc/ssl/private/key.pem' <go >seen 2>&1 &
		exec 9>go
		for n in $(seq 200); do grep -q '^$' seen && break; sleep 0.05; done
		for n in $(seq 20); do
			[ "$(id -u)" -ne 0 ] || touch "/etc/probe$n"
			"$AK" run true || return 1
			[ "$(id -u)" -ne 0 ] || rm "/etc/probe$n"
		done
		echo >&9
		wait
	}
	export -f changes
	mkfifo "$W/go"
	[ "${AS:-root}" != user ] || chown 12345:12345 "$W/go"
	run in_other_etc as bash -c changes
	[ "$status" -eq 0 ]
	! grep -q canary-of-the-host seen
	[ "$(awk '/^$/ { exit } { print }' seen | grep -c .)" -gt 5 ]
	[ "$(awk '/^$/ { exit } { print }' seen | md5sum)" = "$(awk 'past && !/^cat:/ { print } /^$/ { past = 1 }' seen | md5sum)" ]
}

@test "su works inside" {
	only_root
	run ak run su -c id
	[[ "$output" == "uid=0(root)"* ]]
	run ak run su user -c 'id -un'
	says user
}
