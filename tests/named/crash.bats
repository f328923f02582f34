#!/usr/bin/env bats
# Kills at random moments: everything confirmed is there, nothing else is left. tests/named/crash
# does it ROUNDS times (30), and repeats a run with its printed SEED.
load helpers

# crash COUNT SEED IMAGE: in its own state directory
crash() {
	mkdir "$W/state"
	give "$W/state"
	STATE=$W/state
	ak image import --quiet bb "$SHARED/import/bb" >/dev/null
	run as env AK="$AK" /usr/bin/python3 "$TOP/tests/named/crash" "$@"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" == *"nothing is lost, nothing is left" ]]
}

@test "our processes are killed at random moments of the lives of sandboxes of the host's image" {
	[ "${AS:-root}" != subuser ] || skip "as user"
	crash "${ROUNDS:-30}" "${SEED:-$RANDOM}" host
}

@test "our processes are killed at random moments of the lives of sandboxes of an image" {
	[ "${AS:-root}" != user ] || skip "as subuser"
	crash "${ROUNDS:-30}" "${SEED:-$RANDOM}" bb
}
