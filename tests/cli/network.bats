#!/usr/bin/env bats
# The network commands, and what run says about the network. tests/net tests what the gate allows.
# shellcheck disable=SC2154
load helpers
bats_require_minimum_version 1.5.0

DENY="--network-policy deny"

# check STATUS FIRST-LINE ARGUMENT...
check() {
	local expected=$1 line=$2
	shift 2
	run ak network check "$@"
	[ "$status" -eq "$expected" ] || { echo "status $status: $output"; return 1; }
	[ "${lines[0]}" = "$line" ] || { echo "expected: $line"; echo "got: ${lines[0]}"; return 1; }
}

@test "network check: the most specific rule answers, and says where it came from" {
	check 0 "allowed  example.org:443  no rule names it, and the default is allow (default)" example.org
	check 1 "denied  example.org:443  no rule names it, and the default is deny (--network-policy)" $DENY example.org
	check 0 "allowed  api.example.org:443  rule '*.example.org' (--allow-host)" $DENY --allow-host '*.example.org' api.example.org
	check 1 "denied  example.org:443  no rule names it, and the default is deny (--network-policy)" $DENY --allow-host '*.example.org' example.org
	check 1 "denied  a.b.example.org:443  rule '*.b.example.org' (--block-host)" --allow-host '*.example.org' --block-host '*.b.example.org' a.b.example.org
	check 0 "allowed  a.example:443  rule 'a.example:443' (--allow-host)" --block-host a.example --allow-host a.example:443 a.example
	check 1 "denied  a.example:80  rule 'a.example' (--block-host)" --block-host a.example --allow-host a.example:443 a.example:80
	check 1 "denied  a.example:443  rule 'a.example' (--block-host)" --block-host a.example --allow-host a.example a.example
}

@test "network check: options may stand after the host, and its form does not matter" {
	check 0 "allowed  api.example.org:8443  rule 'api.example.org' (--allow-host)" API.Example.Org.:8443 $DENY --allow-host api.example.org
	check 1 "denied  [2606:4700::1]:443  no rule names it, and the default is deny (--network-policy)" '[2606:4700::1]:443' $DENY
	run ak network check
	fails_with 125 "no host to check"
	run ak network check a b c
	fails_with 125 "unexpected argument 'c'"
	run ak network check a b
	fails_with 125 "no sandbox named 'a'"
	run ak network check 'http://example.org'
	fails_with 125 "leave out the scheme"
}

@test "network check: what only special rules open" {
	check 1 "denied  10.1.2.3:80  a private address, which only a rule for addresses opens" --allow-host '*' 10.1.2.3:80
	[ "${lines[1]}" = "to allow it: --allow-cidr 10.1.2.3:80" ]
	check 0 "allowed  10.1.2.3:80  rule '10.1.0.0/16' (--allow-cidr)" --allow-cidr 10.1.0.0/16 10.1.2.3:80
	check 1 "denied  169.254.169.254:80  a cloud's metadata service, which only a rule for its exact address opens" --allow-cidr 169.254.0.0/16 169.254.169.254:80
	check 0 "allowed  169.254.169.254:80  rule '169.254.169.254' (--allow-cidr)" --allow-cidr 169.254.169.254 169.254.169.254:80
	check 1 "denied  metadata.google.internal:80  a cloud's metadata service, which only a rule for its exact address opens" --allow-host metadata.google.internal metadata.google.internal:80
	check 1 "denied  host.docker.internal:5432  this machine, which only a rule for host.agentkernel.internal and the port opens" --allow-host '*' host.docker.internal:5432
	check 0 "allowed  localhost:5432  rule 'host.agentkernel.internal:5432' (--allow-host)" --allow-host localhost:5432 localhost:5432
	check 1 "denied  localhost:5433  this machine, which only a rule for host.agentkernel.internal and the port opens" --allow-host localhost:5432 localhost:5433
}

@test "network check: a profile without a network denies everything" {
	check 1 "denied  example.org:443  this sandbox has no network (--profile)" -p restrictive example.org
	[ "${lines[1]}" = "to allow it: --network" ]
}

@test "network check: a block by name does not stop its address, and this is said" {
	run ak network check --block-host example.org example.org
	[[ "$output" == *"its address can still be reached as a number"* ]]
}

@test "network check --json is one object" {
	run ak network check --json $DENY example.org:80
	[ "$status" -eq 1 ]
	python3 -c 'import json,sys; o=json.loads(sys.argv[1]); assert o["allowed"] is False and o["fix"]=="--allow-host example.org:80", o' "$output"
}

@test "network show: rules in the order in which they count" {
	run ak network show $DENY --allow-host '*.example.org,a.example:443,a.example' --block-host '*:25' --allow-cidr 10.0.0.0/8
	[ "${lines[1]}" = "allow   10.0.0.0/8       --allow-cidr" ]
	[ "${lines[2]}" = "allow   a.example:443    --allow-host" ]
	[ "${lines[3]}" = "allow   a.example        --allow-host" ]
	[ "${lines[4]}" = "allow   *.example.org    --allow-host" ]
	[ "${lines[5]}" = "block   *:25             --block-host" ]
	[ "${lines[6]}" = "block   everything else  --network-policy" ]
	run ak network show -p restrictive
	says "no network (--profile)"
	run ak network show --json $DENY
	python3 -c 'import json,sys; o=json.loads(sys.argv[1]); assert o["default"]=="block" and o["rules"]==[], o' "$output"
}

@test "a denied connection is explained, with the option that would allow it" {
	run ak run $DENY sh -c 'getent hosts denied.example; exit 3'
	[ "$status" -eq 3 ]
	says "agentkernel: the network policy denied denied.example: no rule names it, and the default is deny (--network-policy) (add --allow-host denied.example)"
	run ak run $DENY sh -c 'getent hosts denied.example; true' # no message for a command that succeeds
	says ""
	run ak run --json $DENY getent hosts denied.example
	python3 -c 'import json,sys; d=json.loads(sys.argv[1])["denied"]; assert len(d)==1 and d[0]["host"]=="denied.example" and d[0]["fix"]=="--allow-host denied.example", d' "$output"
}

@test "network log: decisions added up by host, rule and decision" {
	export LOG_HOME="$W/state"
	log() { as env AGENTKERNEL_HOME="$LOG_HOME" "$AK" network log "$@"; }
	run log
	says "no sandbox has used the network yet"
	as env AGENTKERNEL_HOME="$LOG_HOME" "$AK" run --network-policy deny sh -c 'for i in 1 2 3; do getent ahostsv4 a.example; done; getent ahostsv4 b.example' || true
	run log
	[ "$(grep -c 'denied *a.example *- *3 ' <<<"$output")" -eq 1 ]
	[ "$(grep -c 'denied *b.example *- *1 ' <<<"$output")" -eq 1 ]
	run log --json
	python3 -c 'import json,sys; l=[json.loads(x) for x in sys.argv[1].splitlines()]; assert sorted((o["host"],o["count"]) for o in l)==[("a.example",3),("b.example",1)], l' "$output"
	run log run-nosuch
	says "that sandbox has not used the network"
	mv "$LOG_HOME/network.log" "$LOG_HOME/network.log.1" # lines before its first one have been discarded
	sed -i 's/^[0-9]*/1600000000000/' "$LOG_HOME/network.log.1"
	run log run-nosuch
	[[ "$output" == "nothing since 2020-09-1"*", when the log begins; what was before is no longer known" ]]
	as env AGENTKERNEL_HOME="$LOG_HOME" "$AK" create newer >/dev/null
	run log newer
	says "that sandbox has not used the network"
	as env AGENTKERNEL_HOME="$LOG_HOME" "$AK" remove newer >/dev/null
	mv "$LOG_HOME/network.log.1" "$LOG_HOME/network.log"
	[ "$(stat -c %a "$LOG_HOME")" = 700 ]
	[ "$(stat -c %a "$LOG_HOME/network.log")" = 600 ]
}

@test "network log -f shows decisions as they come, and ends with its reader" {
	export LOG_HOME="$W/state"
	as env AGENTKERNEL_HOME="$LOG_HOME" timeout 20 "$AK" network log -f >"$W/out" 3>&- &
	follower=$!
	sleep 0.3
	as env AGENTKERNEL_HOME="$LOG_HOME" "$AK" run --network-policy deny getent ahostsv4 c.example || true
	for _ in $(seq 50); do [ -s "$W/out" ] && break; sleep 0.1; done
	kill "$follower"
	grep -q 'denied  c.example  no rule names it' "$W/out"
}

@test "a command that does not use the network has no gate and writes no log" {
	as env AGENTKERNEL_HOME="$W/state" "$AK" run sh -c 'sleep 0.2; ls /proc' >/dev/null
	[ ! -e "$W/state" ]
}

@test "without its gate a sandbox with a network is refused in words" {
	mkdir "$W/alone"
	cp "$AK" "$W/alone/agentkernel"
	run as "$W/alone/agentkernel" run true
	fails_with 125 "agentkernel-gate' is not there: install agentkernel again"
	run as "$W/alone/agentkernel" run --no-network true
	[ "$status" -eq 0 ]
}

@test "the gate starts only for agentkernel" {
	run "$(dirname "$AK")/agentkernel-gate"
	[ "$status" -eq 125 ]
	[[ "$output" == *"agentkernel starts this program itself"* ]]
}
