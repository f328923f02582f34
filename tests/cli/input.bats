#!/usr/bin/env bats
# Bad input: one line on stderr that names the option and the accepted values, exit 125, and nothing
# created.
load helpers
bats_require_minimum_version 1.5.0

@test "unknown options and commands name the nearest known one" {
	run ak run --memroy 1G true
	fails_with 125 "unknown option '--memroy', did you mean '--memory'?"
	run ak run --work true
	fails_with 125 "did you mean '--workdir'?"
	run ak run -Z true
	fails_with 125 "unknown option '-Z'"
	run ak rnu
	fails_with 125 "did you mean 'run'?"
	run ak frobnicate
	fails_with 125 "unknown command 'frobnicate'"
}

@test "sizes that do not parse or overflow" {
	for bad in x 1x -5 1.5.5 1.2345G 99999999999999999999 99999999T 1 8388608.5 "" " 1G" 1G1; do
		run ak run --memory "$bad" true
		fails_with 125 "--memory: size '$bad'"
	done
	run ak run --memory 12x true
	fails_with 125 "--memory: size '12x' has an unknown unit (use K, M, G or T)"
}

@test "durations that do not parse or overflow" {
	for bad in x 5y -1s 99999999999999999999s 1000000d 0 0s 1h30 1.5ms "" 5sm; do
		run ak run --timeout "$bad" true
		fails_with 125 "--timeout: duration '$bad'"
	done
}

@test "counts that do not parse" {
	for bad in x 0 -1 1.5 99999999999 ""; do
		run ak run --pids "$bad" true
		fails_with 125 "--pids"
	done
	for bad in 0 x 5000; do
		run ak run --cpus "$bad" true
		fails_with 125 "--cpus"
	done
}

@test "mounts that cannot be" {
	run ak run --mount /no/such/dir true
	fails_with 125 "--mount: '/no/such/dir' does not exist"
	run ak run --mount "$W:relative" true
	fails_with 125 "target 'relative' is not an absolute path"
	for target in /proc /proc/sys /sys /dev /dev/shm /; do
		run ak run --mount "$W:$target" true
		fails_with 125 "nothing can be mounted over"
	done
	run ak run --mount "$W:/a:/b:ro" true
	fails_with 125 "too many ':'"
	run ak run --mount :/a true
	fails_with 125 "has no source"
	run ak run --mount "$W:/usr/new" true
	fails_with 125 "read-only directory of this machine"
	run ak run --mount "$W:/../x" true
	fails_with 125 "climbs above"
}

@test "users that do not exist" {
	run ak run --user nosuchuser true
	fails_with 125 "--user: no user 'nosuchuser' inside"
	run ak run --user 0:nosuchgroup true
	fails_with 125 "no group 'nosuchgroup' inside"
	run ak run --user 99999999 true
	fails_with 125 "--user"
}

@test "working directories that are not there" {
	run ak run --workdir /no/such true
	fails_with 125 "no working directory '/no/such' inside"
	run ak run --workdir relative true
	fails_with 125 "not an absolute path"
}

@test "an unreadable working directory" {
	only_user
	mkdir "$W/closed"
	chmod 000 "$W/closed"
	run ak run --workspace="$W/closed" true
	fails_with 125 "closed"
	mkdir "$W/gone"
	run as bash -c "cd $W/gone && rmdir $W/gone && $AK run --workspace true"
	[ "$status" -eq 125 ]
	[[ "$output" == *"working directory cannot be read"* ]]
}

@test "environment files and names" {
	run ak run --env-file /no/file true
	fails_with 125 "--env-file: read '/no/file'"
	run ak run --env =x true
	fails_with 125 "--env: '=x' does not start with a name"
	printf 'A=1\n\nexport B=2\n' >"$W/bad-env"
	chmod 644 "$W/bad-env"
	run ak run --env-file "$W/bad-env" true
	fails_with 125 "--env-file $W/bad-env:3: 'export B=2' does not start with a name"
	printf 'A=1\n# comment\n\nB=two words\n' >"$W/env"
	chmod 644 "$W/env"
	run ak run --env-file "$W/env" -e C=3 sh -c 'echo $A $B $C'
	says "1 two words 3"
	run env D=from-caller "$AK" run -e D -e NOT_SET_ANYWHERE sh -c 'echo $D${NOT_SET_ANYWHERE-unset}'
	says "from-callerunset"
}

@test "profiles, images and backends that do not exist" {
	run ak run -p lax true
	fails_with 125 "no profile 'lax' (use restrictive, moderate or permissive)"
	run ak run --image nosuch --pull never true
	fails_with 125 "image 'nosuch': not in the store, and --pull never forbids to fetch it"
	run ak run --image UPPER --pull never true
	fails_with 125 "UPPER"
	run ak run --backend magic true
	fails_with 125 "no backend 'magic'"
}

@test "network rules that cannot be meant are refused with the place" {
	run ak run --allow-host 'exa mple.org' true
	fails_with 125 "--allow-host: 'exa mple.org': a space at character 4"
	run ak run --allow-host good.example,b@d.example true
	fails_with 125 "--allow-host: 'b@d.example': an '@' (leave out the user) at character 2"
	run ak run --allow-host https://example.org/ true
	fails_with 125 "leave out the scheme and the path"
	run ak run --block-host 'www.*.org' true
	fails_with 125 "at character 5"
	run ak run --allow-host localhost true
	fails_with 125 "name the port too"
	run ak run --allow-host 127.0.0.1:80 true
	fails_with 125 "a port of this machine is host.agentkernel.internal:PORT"
	run ak run --allow-cidr example.org true
	fails_with 125 "--allow-cidr: 'example.org' is not an IP address or network"
	run ak run --block-cidr 10.1.2.3/8 true
	fails_with 125 "use '10.0.0.0/8' for all of it"
	run ak run --allow-host example.org:0 true
	fails_with 125 "number '0' is outside 1 to 65535"
	run ak run --network-policy perhaps true
	fails_with 125 "no network policy 'perhaps' (use allow or deny)"
	run ak run --bandwidth fast true
	fails_with 125 "--bandwidth: rate 'fast'"
}

@test "rules for a network that is not there are refused" {
	run ak run --no-network --allow-host example.org true
	fails_with 125 "--allow-host and --no-network exclude each other"
	run ak run -p restrictive --network-policy deny true
	fails_with 125 "--network-policy: this sandbox has no network (--profile); add --network"
	run ak run -p restrictive --network --network-policy deny true
	[ "$status" -eq 0 ]
	run ak run --no-network true
	[ "$status" -eq 0 ]
}

@test "a rule that changes nothing is pointed out" {
	run ak run --allow-host example.org true
	[ "$status" -eq 0 ]
	says "agentkernel: --allow-host example.org changes nothing, everything is allowed already (add --network-policy deny to allow nothing else)"
	run ak run --allow-host localhost:80 --allow-cidr 10.0.0.0/8 true
	says ""
	run ak run --network-policy deny --allow-host example.org true
	says ""
}

@test "missing values and commands" {
	run ak run --memory
	fails_with 125 "--memory needs a value"
	run ak run
	fails_with 125 "no command to run"
	run ak run --read-only=yes true
	fails_with 125 "--read-only takes no value"
	run ak run -t -T true
	fails_with 125 "exclude each other"
	run -127 ak run ""
	fails_with 127 "the command is empty"
}

@test "limits above what this shell may have" {
	run as bash -c "ulimit -n 100; $AK run --nofile 200 true"
	fails_with 125 "--nofile: 200 is above this shell's own hard limit of 100"
}

@test "a missing wall is a refusal in words" {
	run unshare --user --map-root-user bash -c "echo 0 >/proc/sys/user/max_user_namespaces; $AK run true"
	fails_with 125 "user namespaces"
}

@test "values that look like options stay values" {
	run ak run --image=--profile=permissive true
	fails_with 125 "--profile=permissive"
	run ak run --image -v/:/host true
	[ "$status" -eq 125 ]
	run -127 ak run -- --profile permissive true
	fails_with 127 "--profile"
	run ak create --image host -- --force
	fails_with 125 "--force"
	run ak run --workdir=--help true
	[ "$status" -eq 125 ]
	run ak run -e=--x=y true
	[ "$status" -eq 125 ]
	run ak run -v -x:/y true
	[ "$status" -eq 125 ]
	[ "$(ak run echo -- --help -u root)" = "-- --help -u root" ]
}

@test "a control character in an argument does not reach the terminal" {
	run -127 ak run $'no\x1b[31mcommand'
	[ "$status" -eq 127 ]
	[[ "$output" != *$'\x1b'* ]]
	run ak run $'--\x1b[31mx' true
	fails_with 125 "unknown option"
	[[ "$output" != *$'\x1b'* ]]
}

@test "output that cannot be written is a failure" {
	for command in "policy show" doctor help version "completion bash" "run --json true"; do
		run bash -c "$AK $command >/dev/full"
		fails_with 125 "write the output: No space left on device"
	done
}

@test "help is there wherever it is asked for, and second words are suggested" {
	run ak run --memory 1G --help
	[[ "$output" == *"Usage: agentkernel run"* ]]
	run ak run python3 -c 'import sys; print(sys.argv[1:])' --help
	says "['--help']"
	run ak policy shwo
	fails_with 125 "unknown command 'policy shwo', did you mean 'policy show'?"
}
