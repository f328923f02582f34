#!/usr/bin/env bats
# What `make install` does for AppArmor, in the test's own tree; and what doctor says if AppArmor
# denies user namespaces.
load helpers
bats_require_minimum_version 1.5.0

# A directory as AppArmor 4 has it, and a parser that records its arguments.
make_apparmor() {
	mkdir -p "$W/apparmor.d/abi"
	touch "$W/apparmor.d/abi/4.0"
	printf '#!/bin/sh\necho "$@" >>"%s"\n' "$W/parsed" >"$W/parser"
	chmod 755 "$W/parser"
}

# install_profile TARGET WORD...: one of make's two targets, with these settings
install_profile() {
	local target=$1
	shift
	make -s -C "$TOP" "$target" PREFIX=/opt/our/own APPARMOR="$W/apparmor.d" APPARMOR_PARSER="$W/parser" "$@"
}

# bats test_tags=once
@test "the profile is installed and loaded where AppArmor is, names the program, and goes again" {
	only_root # others may not load a profile
	make_apparmor
	install_profile install-apparmor
	grep -q '^profile agentkernel "/opt/our/own/bin/agentkernel" ' "$W/apparmor.d/agentkernel"
	[ "$(cat "$W/parsed")" = "-r $W/apparmor.d/agentkernel" ]
	install_profile uninstall-apparmor PREFIX=/opt/of/others
	[ -e "$W/apparmor.d/agentkernel" ]
	install_profile uninstall-apparmor
	[ ! -e "$W/apparmor.d/agentkernel" ]
	[ "$(tail -n 1 "$W/parsed")" = "-R $W/apparmor.d/agentkernel" ]
}

# bats test_tags=once
@test "a package gets the profile below DESTDIR, and nothing is loaded" {
	make_apparmor
	install_profile install-apparmor DESTDIR="$W/package"
	grep -q '"/opt/our/own/bin/agentkernel"' "$W/package$W/apparmor.d/agentkernel"
	[ ! -e "$W/apparmor.d/agentkernel" ] && [ ! -e "$W/parsed" ]
	install_profile uninstall-apparmor DESTDIR="$W/package"
	[ ! -e "$W/package$W/apparmor.d/agentkernel" ]
}

# bats test_tags=once
@test "an installation succeeds without AppArmor, with an old one, and with one that takes no profile" {
	mkdir -p "$W/apparmor.d"
	install_profile install-apparmor # like AppArmor 3, whose parser does not know user namespaces
	[ -z "$(ls "$W/apparmor.d")" ]
	install_profile install-apparmor APPARMOR="$W/nosuch"
	[ ! -e "$W/nosuch" ]
	make_apparmor
	install_profile install-apparmor APPARMOR_PARSER=nosuch
	[ -e "$W/apparmor.d/agentkernel" ]
	printf '#!/bin/sh\necho cannot >&2; exit 1\n' >"$W/parser"
	run -0 install_profile install-apparmor
	[ "$(id -u)" -ne 0 ] || [[ "$output" == *"could not be loaded now"* ]]
	run -0 install_profile uninstall-apparmor
}

# bats test_tags=once
@test "AppArmor's own parser takes the profile" {
	command -v apparmor_parser >/dev/null || skip "needs apparmor_parser"
	make_apparmor
	install_profile install-apparmor DESTDIR="$W/package"
	profile=$W/package$W/apparmor.d/agentkernel
	if [ ! -e /etc/apparmor.d/abi/4.0 ]; then
		echo "# an AppArmor before 4: without the two lines that are its own" >&3
		sed -i '/^abi /d; /^  userns,$/d' "$profile"
	fi
	apparmor_parser -QT "$profile"
	sed -i 's/^}/  no rule at all,\n}/' "$profile" # control
	run ! apparmor_parser -QT "$profile"
}

# doctor_where COMMAND: in a user namespace that allows no nested one, with AppArmor's sysctl as in
# Ubuntu
doctor_where() {
	unshare --user --map-root-user sh -c 'echo 1 >/proc/sys/user/max_user_namespaces && exec unshare --user --map-root-user --mount sh -c "$@"' \
		sh "mount -t tmpfs none /proc/sys/kernel && echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns && $1
			HOME=/nonexistent AGENTKERNEL_HOME=$W/state $AK doctor"
}

# bats test_tags=once
@test "doctor names the profile for this program, not the switch for all of them" {
	chmod 755 "$W" # for any caller: the process that reads it is root only in its own namespace
	run doctor_where true
	[[ "$output" == *"sudo make install, and use what that installs: it has an AppArmor profile, /etc/apparmor.d/agentkernel"* ]]
	[[ "$output" != *sysctl* ]]
	make_apparmor
	install_profile install-apparmor DESTDIR="$W/package" PREFIX="$W/p"
	sed "s|\"[^\"]*\"|\"$AK\"|" "$W/package$W/apparmor.d/agentkernel" >"$W/agentkernel"
	run doctor_where "mount -t tmpfs none /etc && mkdir /etc/apparmor.d && cp $W/agentkernel /etc/apparmor.d/ &&"
	[[ "$output" == *"sudo apparmor_parser -r /etc/apparmor.d/agentkernel"* ]]
}
