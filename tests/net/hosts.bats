#!/usr/bin/env bats
# Hosts with other networks than this machine's: one that forwards like Docker's and filters by the
# reverse path, one without IPv6, one with a strict firewall. A sandbox's network is the same on
# each. Every test has its own world with such a host.
# shellcheck disable=SC2086,SC2154
load helpers
bats_require_minimum_version 1.5.0

DOCKERS="net/ipv4/ip_forward=1 net/ipv6/conf/all/forwarding=1 net/ipv4/conf/all/rp_filter=1 net/ipv4/conf/default/rp_filter=1 \
	net/ipv4/conf/all/accept_local=1 net/ipv4/conf/all/route_localnet=1"
NO_IPV6="net/ipv6/conf/all/disable_ipv6=1 net/ipv6/conf/default/disable_ipv6=1"

setup() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	[ "${AS:-root}" != user ] || chown 12345:12345 "$W"
	cd "$W" || return 1
	ENTER=in_world
	[ "${AS:-root}" != user ] || ENTER=in_world_as_user
}

setup_file() {
	net_setup_file && world_down
}

teardown() {
	[ ! -e "$W/box" ] || "$ENTER" "$AK" remove -f box
	world_down
}

new_world() {
	world_up && cp "$BUILD/resolver" "$WORLD/pub/" && ln -sfn "$WORLD/pub" "$SHARED/pub" && world_serve tcp loopback
}

# set_of PID SETTING=VALUE...: settings of a process's network namespace
set_of() {
	local pid=$1
	shift
	nsenter --net="/proc/$pid/ns/net" bash -c '. "$0" && set_net "$@"' "$WORLD_TOP/world.bash" "$@"
}

# host COMMAND...: in the network namespace of the world's host
host() {
	nsenter --net="/proc/$WORLD_HOST/ns/net" "$@"
}

# Starts a sandbox "box" with its own network; BOX is a process in it.
start_box() {
	touch "$W/box"
	"$ENTER" "$AK" create box --network -v "$WORLD/pub:/world:ro" --network-policy deny \
		--allow-host '*.allowed.test,both.test,v6only.test,localhost:8099' >/dev/null 3>&- &&
		"$ENTER" "$AK" start box >/dev/null 3>&- || return 1
	"$ENTER" "$AK" exec -d box sleep "9876.$$" >/dev/null 3>&-
	for _ in $(seq 100); do
		BOX=$(pgrep -f "^sleep 9876.$$\$" | head -n 1) && break
		sleep 0.05
	done
	[ "$(readlink "/proc/$BOX/ns/net")" != "$(readlink "/proc/$WORLD_HOST/ns/net")" ]
}

# box ACTION...: talk.py in the box
box() {
	run "$ENTER" "$AK" exec box /usr/bin/python3 -I /world/talk.py "$@" 3>&-
}

# Checks what the box and a new sandbox can reach and what they cannot. V6=yes: over IPv6 too.
all_is_as_ever() {
	local own="127.0.0.1 172.17.0.1 203.0.113.2 $HOST_OWN ${HOST_SECOND% *} ${HOST_ROUTED% *}"
	mark canary loopback
	for name in tcp.allowed.test both.test ${V6:+v6only.test}; do
		box tcp "$name" 2000
		has "ok "
	done
	box tcp host.agentkernel.internal 8099
	says "ok HTTP/1.0 200 OK"
	seen loopback 8099
	box tcp denied.test 2000
	says nxdomain
	box each 2000 "$DENIED" "$DENIED6" "$OTHER"
	all_refused
	box udp "$WWW" 7
	refused
	mark loopback
	for port in 80 8099; do
		run try --network-policy allow -- each "$port" $own $WORLD_PRIVATE
		all_refused
	done
	unseen canary
	unseen loopback
	run talk_outside each 8099 $own # control
	all_ok
}

@test "the world itself is the same, whatever its namespaces begin with" {
	WORLD_BEGINS="$DOCKERS $NO_IPV6" new_world
	[ "$(host cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/up0/rp_filter)" = $'0\n0' ]
	# nobody answers there, and no router reports it either
	run talk_outside tcp "$HOLE" 7
	says timeout
	start_box
	V6=yes all_is_as_ever
}

@test "a sandbox has the same network on a host that forwards and filters by the reverse path, and so do its namespaces" {
	new_world
	set_of "$WORLD_HOST" $DOCKERS
	start_box
	set_of "$BOX" $DOCKERS
	[ "$(nsenter --net="/proc/$BOX/ns/net" cat /proc/sys/net/ipv4/ip_forward)" = 1 ]
	V6=yes all_is_as_ever
}

@test "a sandbox has the same network on a host without IPv6, but for that" {
	new_world
	set_of "$WORLD_HOST" $NO_IPV6
	run talk_outside tcp "$WWW6" 2000 # control
	[[ $output == E* ]]
	start_box
	all_is_as_ever
	box tcp v6only.test 2000
	refused
}

@test "a sandbox has the same network on a host with a strict firewall" {
	new_world
	host nft -f - <<-END
	table inet strict {
		chain raw {
			type filter hook prerouting priority raw; policy accept;
			iif != lo fib saddr . iif oif missing drop
		}
		chain input {
			type filter hook input priority filter; policy drop;
			iif lo accept
			ct state established,related accept
			ct state invalid drop
		}
		chain forward { type filter hook forward priority filter; policy drop; }
		chain output {
			type filter hook output priority filter; policy drop;
			oif lo accept
			ct state established,related accept
			udp dport 53 accept
			tcp dport { 53, 80, 443, 2000 } accept
		}
	}
	END
	run talk_outside tcp "$WWW" 2003 # control: the firewall works
	says EPERM || says timeout
	start_box
	V6=yes all_is_as_ever
}
