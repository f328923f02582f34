# cases.bash - what the files in programs/ are written with; check runs each inside and outside and compares case by case.
#
# A program's file opens with comments that check reads:
#   # options: --memory 512M     of `agentkernel run`, besides the usual
#   # user: nobody               as whom, inside and outside (default: root, as a sandbox's commands are)
#   # callers: root user         who calls `agentkernel run` (default: root user subuser)
#   # packages: redis-server     without which the program is skipped
#   # seconds: 300               how long one run may take (default 60)
# It starts in an empty directory of the same name inside and outside.
set -u
TOOLS=$(dirname "${BASH_SOURCE[0]}")
mkdir -p "$WORK" && cd "$WORK" || exit 1

# try NAME COMMAND...: one case, whose output and exit status must be the same inside and outside.
try() {
	printf '\036%s\n' "$1"
	shift
	"$@" </dev/null 2>&1
	printf '\037%s\n' $?
}

# expect NAME TEXT COMMAND...: a case about a limit. Inside, COMMAND must print TEXT; outside there
# is no limit.
expect() {
	if [ "$WHERE" = inside ]; then
		try "$1" "${@:3}"
	else
		try "$1" echo "$2"
	fi
}

# until_true COMMAND...: waits until a server has started, at most ten seconds.
until_true() {
	for _ in $(seq 100); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}

# shell TEXT: for cases of more than one command
shell() {
	bash -c "$1"
}
