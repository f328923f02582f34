#!/usr/bin/env bats
# TXT, MX and SRV records: those of allowed names unchanged, of others none, and no reply of a
# server does harm.
# shellcheck disable=SC2086,SC2154
load helpers
bats_require_minimum_version 1.5.0

SERVER=93.184.216.53
CLUSTER="--network-policy deny --allow-host cluster.test"

setup_file() {
	net_setup_file && world_serve tcp
}

setup() {
	W=$(mktemp -d "$SHARED/work/XXXXXX")
	chmod 755 "$W"
	cd "$W" || return 1
	mark dns rogue wire
}

@test "an allowed name's TXT and MX records are told, over UDP and TCP, whoever is asked" {
	for how in "$SERVER udp" "$SERVER tcp" "$ROGUE udp"; do
		run try $CLUSTER -- records $how TXT cluster.test
		says "ok noerror 'authSource=' 'admin'|'v=spf1 -all'"
		run try $CLUSTER -- records $how MX cluster.test
		says "ok noerror 10 mail.cluster.test.|20 denied.test."
	done
	seen dns "TXT cluster.test"
	seen dns "MX cluster.test"
	unseen rogue
	unseen wire "$ROGUE"
	run talk_outside records "$SERVER" udp MX cluster.test # control
	says "ok noerror 10 mail.cluster.test.|20 denied.test."
}

@test "a service's SRV and TXT records are governed by the rule of its host" {
	for rule in cluster.test cluster.test:27017 '*.test' '*.cluster.test' _mongodb._tcp.cluster.test; do
		run try --network-policy deny --allow-host "$rule" -- records "$SERVER" udp SRV _mongodb._tcp.cluster.test
		says "ok noerror 0 5 27017 shard-0.cluster.test.|1 0 2000 tcp.allowed.test."
	done
	run try $CLUSTER -- records "$SERVER" udp TXT _alias.cluster.test
	says "ok noerror 'some text'"
	run try $CLUSTER -- records "$SERVER" udp SRV _none._tcp.cluster.test # "there is no such service"
	says "ok noerror 0 0 0 ."
	run try --network-policy allow -- records "$SERVER" udp SRV _mongodb._tcp.cluster.test
	has 27017
}

@test "records of names that no rule allows do not exist, and nobody outside hears of the question" {
	for kind in TXT MX SRV; do
		for name in denied.test _mongodb._tcp.denied.test 6d7920736563726574.cluster.test _a._b._c.cluster.test \
			_averyveryverylongword.cluster.test _x.below.cluster.test _tcp.test; do
			run try $CLUSTER -- records "$SERVER" udp "$kind" "$name"
			says "ok nxdomain "
		done
	done
	run try --network-policy allow --block-host denied.test -- records "$SERVER" udp SRV _mongodb._tcp.denied.test
	says "ok nxdomain "
	run try --network-policy allow -- records "$SERVER" udp SRV _mongodb._tcp.metadata.google.internal
	says "ok nxdomain "
	run try $CLUSTER --allow-host host.agentkernel.internal:8099 -- records "$SERVER" udp TXT _x.host.agentkernel.internal
	says "ok noerror " # it exists, without records
	unseen dns
	unseen wire
	run talk_outside records "$SERVER" udp SRV _mongodb._tcp.denied.test # control
	says "ok noerror 0 5 27017 denied.test."
	seen dns "SRV _mongodb._tcp.denied.test"
}

@test "other questions for a service's name are answered without asking outside" {
	for kind in A AAAA HTTPS ANY; do
		run try $CLUSTER -- dns "$SERVER" udp "$kind" _mongodb._tcp.cluster.test
		says "ok noerror 0"
	done
	unseen dns
	unseen wire
}

@test "a target that records name is still judged when it is connected to" {
	run inside $CLUSTER --allow-host tcp.allowed.test -- sh -c "python3 -I /world/talk.py records $SERVER udp SRV _mongodb._tcp.cluster.test
		python3 -I /world/talk.py each 2000 denied.test tcp.allowed.test"
	[[ "${lines[1]}" == "denied.test nxdomain" ]]
	[[ "${lines[2]}" == "tcp.allowed.test ok 220 welcome" ]]
	unseen wire "$DENIED"
}

@test "names without such records have none, and names that do not exist say so" {
	run try --network-policy deny --allow-host www.allowed.test,x.nowhere.test -- records "$SERVER" udp TXT www.allowed.test
	says "ok noerror "
	run try --network-policy deny --allow-host www.allowed.test,x.nowhere.test -- records "$SERVER" udp MX x.nowhere.test
	says "ok nxdomain "
}

@test "a set that does not fit a packet comes whole over TCP" {
	run try --network-policy deny --allow-host big.test -- records "$SERVER" udp TXT big.test
	says "ok noerror truncated "
	run try --network-policy deny --allow-host big.test -- records "$SERVER" tcp TXT big.test
	[ "$(tr '|' '\n' <<<"$output" | wc -l)" -eq 38 ]
	has "xxx' '37'"
}

@test "sets beyond the maximum and malformed replies are failures, and the gate goes on" {
	run inside --network-policy deny --allow-host '*.test' -- sh -c "for name in huge.test large.test short.test; do
		python3 -I /world/talk.py records $SERVER tcp TXT \$name; done
		python3 -I /world/talk.py records $SERVER udp MX loop.test
		python3 -I /world/talk.py records $SERVER udp MX hostile.test
		python3 -I /world/talk.py records $SERVER udp TXT text.test"
	[ "${lines[0]}" = "ok servfail " ]
	[ "${lines[1]}" = "ok servfail " ]
	[ "${lines[2]}" = "ok servfail " ]
	[ "${lines[3]}" = "ok servfail " ]
	[ "${lines[4]}" = "ok noerror 4 good.test." ]
	[ "${lines[5]}" = "ok noerror 'some text'" ]
	[ "${#lines[@]}" -eq 6 ]
}

@test "an answer is kept, and a question for another type is another question" {
	run inside $CLUSTER -- sh -c "for kind in TXT TXT MX TXT MX A; do python3 -I /world/talk.py dns $SERVER udp \$kind cluster.test; done"
	has "ok noerror 2"
	[ "$(since dns | grep -c 'TXT cluster.test')" -eq 1 ]
	[ "$(since dns | grep -c 'MX cluster.test')" -eq 1 ]
	[ "$(since dns | grep -c ' A cluster.test')" -eq 1 ]
}

@test "questions for records are limited with all others" {
	started=$SECONDS
	run inside --network-policy deny --allow-host cluster.test -- python3 -I -c "
import socket, struct
u = socket.socket(type=socket.SOCK_DGRAM)
u.settimeout(2)
codes = {}
for i in range(1500):
    label = b'_%x' % i
    u.sendto(struct.pack('!HHHHHH', i, 256, 1, 0, 0, 0) + bytes([len(label)]) + label + b'\7cluster\4test\0\0\x10\0\1', ('$SERVER', 53))
    code = u.recv(4096)[3] & 15
    codes[code] = codes.get(code, 0) + 1
print(codes)"
	arrived=$(since dns | grep -c 'TXT _')
	[ "$arrived" -ge 400 ]
	[ "$arrived" -le $((500 + 50 * (SECONDS - started + 1))) ]
	has "2: " # SERVFAIL beyond the limit
}

@test "lookups of records are logged with their type, and denied ones with the rule to add" {
	home="$SHARED/home/records-$RANDOM"
	install -d -m 777 "$home"
	enter=in_world
	[ "${AS:-root}" != user ] || enter=in_world_as_user
	run "$enter" env AGENTKERNEL_HOME="$home/state" "$AK" run --network -v "$WORLD/pub:/world:ro" $CLUSTER -- sh -c "
		python3 -I /world/talk.py dns $SERVER udp SRV _mongodb._tcp.cluster.test
		python3 -I /world/talk.py dns $SERVER udp SRV _mongodb._tcp.denied.test; exit 3"
	[ "$status" -eq 3 ]
	has "the network policy denied _mongodb._tcp.denied.test"
	has "(add --allow-host denied.test)"
	run "$enter" env AGENTKERNEL_HOME="$home/state" "$AK" network log
	grep -q 'lookup *_mongodb._tcp.cluster.test .*asked outside (SRV)' <<<"$output"
	grep -q 'denied *_mongodb._tcp.denied.test' <<<"$output"
}

@test "node resolves SRV, TXT and MX" {
	run through --allow-host cluster.test -- node -e "
const d = require('dns').promises;
(async () => {
	const s = await d.resolveSrv('_mongodb._tcp.cluster.test');
	console.log(s.map(x => x.name + ':' + x.port).join(' '));
	console.log(JSON.stringify(await d.resolveTxt('cluster.test')));
	console.log((await d.resolveMx('cluster.test')).map(x => x.priority + ' ' + x.exchange).sort().join(', '));
	await d.resolveSrv('_mongodb._tcp.denied.test').catch(e => console.log(e.code));
})()"
	[[ "${lines[0],,}" == "shard-0.cluster.test:27017 tcp.allowed.test:2000" ]]
	[ "${lines[1]}" = '[["authSource=","admin"],["v=spf1 -all"]]' ]
	[ "${lines[2]}" = "10 mail.cluster.test, 20 denied.test" ]
	is_control || [ "${lines[3]}" = ENOTFOUND ]
}

@test "a resolver of its own with EDNS falls back to TCP" {
	run through --allow-host cluster.test,big.test -- "$PUB/resolver" -t SRV _mongodb._tcp.cluster.test
	[[ "${lines[0],,}" == "0 5 27017 shard-0.cluster.test" ]]
	[ "${lines[1]}" = "1 0 2000 tcp.allowed.test" ]
	run through --allow-host cluster.test,big.test -- "$PUB/resolver" -t TXT big.test
	succeeds
	[ "${#lines[@]}" -eq 38 ]
	run through --allow-host cluster.test,big.test -- "$PUB/resolver" -t MX cluster.test
	says "10 mail.cluster.test
20 denied.test"
}
