#!/usr/bin/env bats
# Two commands on one sandbox at the same time: tests/named/race, for SECONDS_EACH (10); its printed
# SEED repeats the same commands. `make soak` does it for minutes, and with many workers.
load helpers

setup_file() { # no image
	setup_shared
}

race() {
	mkdir "$W/state"
	give "$W/state"
	STATE=$W/state
	run as env AK="$AK" /usr/bin/python3 "$TOP/tests/named/race" --seconds "${SECONDS_EACH:-10}" --seed "${SEED:-$RANDOM}" "$@"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" == *"all is as it should be" ]]
}

@test "two commands at the same moment leave a sandbox that holds what was confirmed" {
	[ "${AS:-root}" != subuser ] || skip "as user"
	race --first restore,start
}
