# world.bash - a small internet for tests: real servers on public-looking addresses, without
# touching the machine's own network. Needs root.
#
# Two network namespaces joined by a veth pair. "Host" is where clients (and agentkernel) start;
# "net" is everything else. Neither has a name: each is held by a process, so runs side by side
# do not meet, and when the holders die nothing is left. All servers live in the process
# namespace of net's holder, so that they die with it, however they were started. A watcher ends
# the world when the shell that made it is gone.
#
#   world_up                     makes the world: dns, wire and canary are on; under a second
#   world_serve NAME...          starts servers, once each, and waits until they listen:
#                                tcp web git ssh redis postgres loopback
#   in_world COMMAND...          runs a command on the host side, as root
#   in_world_as_user COMMAND...  the same as an id without account or privilege
#   world_log NAME               what a server saw: dns rogue wire canary tcp web loopback
#   world_down                   ends it all
#
# dns logs every query; rogue is another name server that nobody was told about; wire logs every
# connection attempt and every packet other than TCP that left the host, whoever was to get it;
# canary listens on the addresses that must never be reached. What clients need (the CA, keys)
# is in $WORLD/pub.
#
# A new namespace begins with some of the machine's own settings: with Docker's, it forwards. So the
# world sets all that it relies on. WORLD_BEGINS="net/ipv4/ip_forward=1 ..." are settings that its
# namespaces have before that, for a test of the world itself.
#
# Addresses. The documentation, private and test ranges are refused by the gate, so servers are
# in ranges that look public; the host itself owns one such address too.

WORLD_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORLD_PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin

WWW=93.184.216.34 # www.allowed.test, and all below allowed.test
WWW6=2a00:1450:4001::34
OTHER=93.184.216.35 # other.test
DENIED=93.184.216.36 # denied.test
DENIED6=2a00:1450:4001::36
ROGUE=93.184.216.54 # a name server
DEAD=93.184.216.99 # nobody listens
HOLE=93.184.218.1 # nobody answers
HOST_OWN=93.184.217.2 # the host's own
HOST_OWN6=2a00:1450:4017::2
HOST_SECOND="93.184.220.2 2a00:1450:4020::2" # its own too: the second address of a subnet
HOST_ROUTED="93.184.221.7 2a00:1450:4021::7" # covered by a local route, on no interface
WORLD_PRIVATE="10.9.8.7 192.168.77.7 172.16.7.7 169.254.169.254 100.64.7.7 198.18.77.7 198.51.100.7 \
	240.0.0.7 fd00:ec2::254 fd77::7 64:ff9b::a09:807 2002:a09:807::1 2001::7"
WORLD_CANARY_PORTS="22 53 80 443 2000 6379"
export WWW WWW6 OTHER DENIED DENIED6 ROGUE DEAD HOLE HOST_OWN HOST_OWN6 HOST_SECOND HOST_ROUTED WORLD_PRIVATE WORLD_PATH

world_up() {
	export WORLD WORLD_HOST WORLD_NET WORLD_WATCH
	WORLD=$(mktemp -d /tmp/agentkernel-world.XXXXXX) || return 1
	chmod 755 "$WORLD"
	mkdir "$WORLD"/{log,pub,run,etc,state}
	mkdir -m 777 "$WORLD/home"
	cp "$WORLD_TOP"/talk.py "$WORLD/pub/"
	printf 'nameserver 93.184.216.53\noptions timeout:3 attempts:1\n' >"$WORLD/etc/resolv.conf"
	printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n%s inhosts.test\n' "$WWW" >"$WORLD/etc/hosts"
	printf 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\ntester:x:12345:12345::%s:/bin/sh\n' \
		"$WORLD/home" >"$WORLD/etc/passwd"
	mkfifo "$WORLD/run/ready"

	# shellcheck disable=SC2016 # for the holders
	setsid unshare --net --mount bash -c '
		. "$2" && world_settings &&
		echo "0 2147483647" >/proc/sys/net/ipv4/ping_group_range &&
		mount --bind "$1/etc/resolv.conf" /etc/resolv.conf && mount --bind "$1/etc/hosts" /etc/hosts &&
		echo host >"$1/run/ready" && exec sleep infinity' holder "$WORLD" "$WORLD_TOP/world.bash" \
		</dev/null >"$WORLD/log/holder-host" 2>&1 3>&- &
	WORLD_HOST=$!
	# shellcheck disable=SC2016
	setsid unshare --net --mount --pid --fork --kill-child --mount-proc bash -c '
		. "$2" && world_settings &&
		mount --bind "$1/etc/passwd" /etc/passwd && echo net >"$1/run/ready" &&
		while :; do sleep 1000 & wait; done' holder "$WORLD" "$WORLD_TOP/world.bash" \
		</dev/null >"$WORLD/log/holder-net" 2>&1 3>&- &
	WORLD_NET=$!
	# shellcheck disable=SC2016
	setsid bash -c 'tail --pid="$1" -f /dev/null; kill -9 "$2" "$3"; sleep 0.2; rm -rf "$4"' \
		watch "$$" "$WORLD_HOST" "$WORLD_NET" "$WORLD" </dev/null >/dev/null 2>&1 3>&- &
	WORLD_WATCH=$!
	disown -a
	world_await 2 && world_links && world_start wire "$WORLD_TOP/wire.py" "$WORLD/log/wire" &&
		world_start dns "$WORLD_TOP/dns.py" "$WORLD/log/dns" "$WORLD/log/rogue" "$ROGUE" &&
		world_start canary "$WORLD_TOP/canary.py" "$WORLD/log/canary" \
			$(for a in $WORLD_PRIVATE; do for p in $WORLD_CANARY_PORTS; do echo "$a/$p"; done; done) \
			"$DENIED/22" "$DENIED/853" "$DENIED6/22" "$WWW/25" "$ROGUE/853" &&
		world_await 3 || { echo "the world did not come up:"; cat "$WORLD"/log/*; world_down; return 1; } >&2
}

world_down() {
	[ -n "${WORLD:-}" ] || return 0
	kill -9 -- "-$WORLD_WATCH" "$WORLD_HOST" "$WORLD_NET" 2>/dev/null
	rm -rf "$WORLD" 2>/dev/null || { sleep 0.3; rm -rf "$WORLD"; }
	unset WORLD
	return 0
}

# set_net SETTING=VALUE...: of this network namespace; skips those that the kernel does not have
set_net() {
	local setting
	for setting; do
		[ ! -e "/proc/sys/${setting%%=*}" ] || echo "${setting#*=}" >"/proc/sys/${setting%%=*}" || return 1
	done
}

# No forwarding: an address that nobody has must not answer (HOLE), but a router would.
world_settings() {
	local conf
	# shellcheck disable=SC2086 # a list of words
	set_net ${WORLD_BEGINS:-} && set_net net/ipv4/ip_forward=0 net/ipv4/tcp_rmem='4096 131072 6291456' \
		net/ipv4/tcp_wmem='4096 16384 4194304' net/ipv6/conf/all/forwarding=0 || return 1
	for conf in all default lo; do
		set_net net/ipv4/conf/$conf/{rp_filter,accept_local,route_localnet,arp_ignore,arp_announce,arp_filter}=0 \
			net/ipv6/conf/$conf/{disable_ipv6,accept_ra,use_tempaddr}=0 || return 1
	done
}

# The pair between the two sides, and all addresses. Neighbour entries are set from the start,
# because IPv6 would need a second to resolve them.
world_links() {
	nsenter --net="/proc/$WORLD_HOST/ns/net" ip -batch - <<-END || return 1
	link set lo up
	link add up0 address 02:00:00:00:00:02 type veth peer name up0 address 02:00:00:00:00:01 netns $WORLD_NET
	address add 203.0.113.2/24 dev up0
	address add $HOST_OWN/32 dev up0
	address add 172.17.0.1/16 dev lo
	address add 2001:db8:113::2/64 dev up0 nodad
	address add $HOST_OWN6/128 dev up0 nodad
	link set up0 up
	address add 93.184.220.1/24 dev up0
	address add 93.184.220.2/24 dev up0
	address add 2a00:1450:4020::1/64 dev up0 nodad preferred_lft 0
	address add 2a00:1450:4020::2/64 dev up0 nodad preferred_lft 0
	route add local 93.184.221.0/24 dev lo
	route add local 2a00:1450:4021::/64 dev lo
	END
	{
		echo "link set lo up"
		echo "address add 203.0.113.1/24 dev up0"
		echo "address add 2001:db8:113::1/64 dev up0 nodad"
		echo "link set up0 up"
		echo "neighbour add 2001:db8:113::2 lladdr 02:00:00:00:00:02 nud permanent dev up0"
		echo "route add $HOST_OWN/32 via 203.0.113.2"
		echo "route add $HOST_OWN6/128 via 2001:db8:113::2"
		for address in "$WWW" "$WWW6" "$OTHER" "$DENIED" "$DENIED6" "$ROGUE" "$DEAD" 93.184.216.53 $WORLD_PRIVATE; do
			case $address in
			*:*) echo "address add $address/128 dev lo nodad" ;;
			*) echo "address add $address/32 dev lo" ;;
			esac
		done
	} | nsenter --net="/proc/$WORLD_NET/ns/net" ip -batch - || return 1
	nsenter --net="/proc/$WORLD_HOST/ns/net" ip -batch - <<-END
	neighbour add 2001:db8:113::1 lladdr 02:00:00:00:00:01 nud permanent dev up0
	route add default via 203.0.113.1
	route add default via 2001:db8:113::1 dev up0
	END
}

# world_await COUNT: waits until that many programs have reported that they are ready
world_await() {
	local count=$1 fd line
	exec {fd}<>"$WORLD/run/ready"
	while [ "$count" -gt 0 ]; do
		read -r -t 20 -u "$fd" line || { exec {fd}>&-; return 1; }
		count=$((count - 1))
	done
	exec {fd}>&-
}

# Runs a command on net's side, as root.
world_net() {
	nsenter --net="${WORLD_SIDE:-/proc/$WORLD_NET/ns/net}" --mount="/proc/$WORLD_NET/ns/mnt" \
		--pid="/proc/$WORLD_NET/ns/pid_for_children" env -i PATH="$WORLD_PATH" HOME="$WORLD/home" LC_ALL=C "$@"
}

world_background() {
	local name=$1
	shift
	world_net "$@" </dev/null >"$WORLD/log/$name.out" 2>&1 3>&- &
	disown
}

# world_start NAME PROGRAM ARG...: one of our Python servers, which reports when it is ready
world_start() {
	local name=$1
	shift
	world_background "$name" WORLD_READY="$WORLD/run/ready" /usr/bin/python3 -IBS "$@"
}

# world_listening PORT: waits until a process listens there on net's side
world_listening() {
	local hex line i
	printf -v hex '%04X' "$1"
	for ((i = 0; i < 1000; i++)); do
		while read -r line; do
			[[ $line =~ ^[0-9]+:\ [0-9A-F]+:$hex\ [0-9A-F]+:0000\ 0A ]] && return 0
		done < <(cat "/proc/$WORLD_NET/net/tcp" "/proc/$WORLD_NET/net/tcp6")
		sleep 0.01
	done
	echo "nothing listens on port $1" >&2
	cat "$WORLD"/log/*.out >&2
	return 1
}

world_serve() {
	local name
	for name; do
		[ ! -e "$WORLD/state/$name" ] || continue
		"world_serve_$name" || { echo "server $name does not start" >&2; return 1; }
		touch "$WORLD/state/$name"
	done
}

# echo 7 (and UDP 7), banner 2000, count until end 2001, reset 2002, silent 2003, big 2004
world_serve_tcp() {
	world_start tcp "$WORLD_TOP/tcp.py" "$WORLD/log/tcp" "$WWW" "$WWW6" "$OTHER" "$DENIED" "$DENIED6" && world_await 1
}

# the host's own servers: on its loopback, its own addresses, and Unix sockets @$WORLD and $WORLD/sock
world_serve_loopback() {
	WORLD_SIDE=/proc/$WORLD_HOST/ns/net world_start loopback "$WORLD_TOP/canary.py" "$WORLD/log/loopback" \
		127.0.0.1/8099 ::1/8099 172.17.0.1/8099 203.0.113.2/8099 2001:db8:113::2/8099 \
		"$HOST_OWN/8099" "$HOST_OWN6/8099" $(printf '%s/8099 ' $HOST_SECOND $HOST_ROUTED) "unix:@$WORLD" "unix:$WORLD/sock" && world_await 1 &&
		chmod 666 "$WORLD/sock"
}

world_certificates() {
	local dir=$WORLD/run/tls
	mkdir -m 700 "$dir" || return 1
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=test CA" \
		-keyout "$dir/ca.key" -out "$WORLD/pub/ca.pem" 2>>"$WORLD/log/openssl.out" &&
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=www.allowed.test" \
			-keyout "$dir/key" -out "$dir/request" 2>>"$WORLD/log/openssl.out" &&
		openssl x509 -req -in "$dir/request" -CA "$WORLD/pub/ca.pem" -CAkey "$dir/ca.key" -CAcreateserial -days 2 \
			-extfile <(echo "subjectAltName=DNS:*.allowed.test,DNS:other.test,DNS:denied.test,DNS:fronted.test,DNS:both.test,DNS:v6only.test,DNS:cname.test,DNS:inhosts.test,IP:$WWW,IP:$WWW6") \
			-out "$dir/cert" 2>>"$WORLD/log/openssl.out"
}

# nginx for HTTP, TLS and HTTP/2; behind it a Python server for uploads, git, packages
world_serve_web() {
	local dir=$WORLD/run/nginx
	world_certificates || return 1
	mkdir -m 755 "$dir" "$WORLD/run/files" || return 1
	: >"$WORLD/log/web"
	head -c 20000000 /dev/zero | tr '\0' x >"$WORLD/run/files/large"
	sed -e "s,@WORLD@,$WORLD,g" -e "s,@WWW@,$WWW,g" -e "s,@WWW6@,$WWW6,g" -e "s,@OTHER@,$OTHER,g" \
		-e "s,@DENIED@,$DENIED,g" -e "s,@DENIED6@,$DENIED6,g" "$WORLD_TOP/nginx.conf" >"$dir/conf"
	world_start backend "$WORLD_TOP/backend.py" "$WORLD/run/git" && world_await 1 &&
		world_background nginx nginx -p "$dir" -c "$dir/conf" -e "$dir/error" && world_listening 80
}

# git over its own protocol, and over HTTP when web runs
world_serve_git() {
	local tree=$WORLD/run/tree git=(git -c init.defaultBranch=main -c user.name=t -c user.email=t@t.test)
	world_net "${git[@]}" init -q "$tree" && echo hello >"$tree/hello" &&
		head -c 300000 /dev/urandom >"$tree/data" && world_net git -C "$tree" add . &&
		world_net "${git[@]}" -C "$tree" commit -qm one &&
		world_net git clone -q --bare "$tree" "$WORLD/run/git/project.git" &&
		world_background git-daemon git daemon --base-path="$WORLD/run/git" --export-all --reuseaddr \
			--listen="$WWW" --port=9418 && world_listening 9418
}

# ssh with keys, as an ordinary user called tester that exists only on this side
world_serve_ssh() {
	local dir=$WORLD/run/ssh
	mkdir -m 755 "$dir" && ssh-keygen -q -t ed25519 -N '' -f "$dir/host" && ssh-keygen -q -t ed25519 -N '' -f "$WORLD/pub/key" &&
		chmod 644 "$WORLD/pub/key" && chown -R 12345:12345 "$dir" &&
		echo "ssh.allowed.test $(cut -d' ' -f1,2 "$dir/host.pub")" >"$WORLD/pub/known_hosts" &&
		printf '%s\n' "HostKey $dir/host" "AuthorizedKeysFile $WORLD/pub/key.pub" "StrictModes no" "UsePAM no" \
			"PasswordAuthentication no" "PidFile none" "Port 22" "ListenAddress $WWW" >"$dir/conf" &&
		world_background ssh setpriv --reuid 12345 --regid 12345 --clear-groups --inh-caps +net_bind_service \
			--ambient-caps +net_bind_service "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f "$dir/conf" &&
		world_listening_at "$WWW" 22
}

world_serve_redis() {
	mkdir -m 777 "$WORLD/run/redis" &&
		world_background redis setpriv --reuid 12345 --regid 12345 --clear-groups redis-server --bind "$WWW" --port 6379 \
			--save '' --protected-mode no --dir "$WORLD/run/redis" && world_listening_at "$WWW" 6379
}

world_serve_postgres() {
	local dir=$WORLD/run/postgres bin
	bin=$(dirname "$(ls /usr/lib/postgresql/*/bin/initdb | tail -1)") || return 1
	mkdir -m 700 "$dir" && chown 12345:12345 "$dir" && chmod 711 "$WORLD/run" &&
		world_net setpriv --reuid 12345 --regid 12345 --clear-groups "$bin/initdb" -D "$dir" -A trust -U tester \
			--no-sync --no-locale -E UTF8 >"$WORLD/log/initdb.out" 2>&1 </dev/null &&
		echo "host all all all trust" >>"$dir/pg_hba.conf" &&
		world_background postgres setpriv --reuid 12345 --regid 12345 --clear-groups "$bin/postgres" -D "$dir" -k "$dir" \
			-h "$WWW" -F && world_listening 5432
}

# world_listening_at ADDRESS PORT: for ports where a canary listens on other addresses (v4)
world_listening_at() {
	local hex i octets
	IFS=. read -ra octets <<<"$1"
	printf -v hex '%02X%02X%02X%02X:%04X' "${octets[3]}" "${octets[2]}" "${octets[1]}" "${octets[0]}" "$2"
	for ((i = 0; i < 1000; i++)); do
		grep -q " $hex 00000000:0000 0A" "/proc/$WORLD_NET/net/tcp" && return 0
		sleep 0.01
	done
	echo "nothing listens on $1:$2" >&2
	cat "$WORLD"/log/*.out >&2
	return 1
}

# in_world [-C DIR] [-e K=V]... COMMAND...: on the host's side, in a clean environment
in_world() {
	world_enter "" "$@"
}

in_world_as_user() {
	world_enter "setpriv --reuid 12345 --regid 12345 --clear-groups --no-new-privs" "$@"
}

world_enter() {
	local user=$1
	shift
	# shellcheck disable=SC2086 # a list of words
	nsenter --net="/proc/$WORLD_HOST/ns/net" --mount="/proc/$WORLD_HOST/ns/mnt" $user \
		env -i -C "$PWD" PATH="$WORLD_PATH" HOME="${SHARED:-$WORLD}/home" AGENTKERNEL_HOME="${SHARED:-$WORLD}/home/state" AGENTKERNEL_IMAGE="${IMAGE:-host}" LC_ALL=C.UTF-8 "$@"
}

# A server's log. Another process logs packets: sends a mark after all previous packets, and reads
# the log when the mark is in it.
world_log() {
	local mark i
	if [ "$1" = wire ]; then
		mark="mark-$RANDOM$RANDOM$RANDOM"
		nsenter --net="/proc/$WORLD_HOST/ns/net" bash -c "echo $mark >/dev/udp/203.0.113.1/9"
		for ((i = 0; i < 500; i++)); do
			grep -q "$mark" "$WORLD/log/wire" && break
			sleep 0.01
		done
	fi
	grep -av mark- "$WORLD/log/$1" 2>/dev/null
	return 0
}
