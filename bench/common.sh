# shellcheck shell=bash
#
# common.sh - what the benchmark scripts share; sourced, not run
#
# After it, $agentkernel is the binary to measure; make_work makes the temporary folder $work.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
agentkernel=$(realpath -m "${AGENTKERNEL:-$here/../build/agentkernel}")
work=

skip() {
	echo "skipped: $*"
}

die() {
	echo "${0##*/}: $*" >&2
	exit 2
}

# Prints the path of a program; where there is none, says so and fails.
installed() {
	command -v "$1" || {
		skip "$1: not installed" >&2
		return 1
	}
}

has_agentkernel() {
	[[ -x $agentkernel ]] || {
		skip "agentkernel: no binary at $agentkernel (AGENTKERNEL=PATH names another)"
		return 1
	}
}

# Makes $work in the folder given, and goes there: no project's config takes part.
make_work() {
	work=$(mktemp -d "$1/agentkernel-bench.XXXXXX")
	cd "$work" || exit
	export AGENTKERNEL_HOME=$work/home # nor do the user's sandboxes and audit log
	export AGENTKERNEL_IMAGE=host     # nor is an image looked for where none is named
}

remove_work() {
	cd /
	[[ -z $work ]] || rm -rf --one-file-system "$work"
}

build_sidebyside() {
	"${CC:-cc}" -std=gnu17 -O2 -o "$work/sidebyside" "$here/sidebyside.c"
}
