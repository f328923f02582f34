# surroundings.bash - common settings of every bats file, for any user and directory. Each
# helpers.bash begins with it.
#
# A caller's umask, locale, home, proxies and settings of git, sudo and Docker are not part of a
# test: only the variables named here are passed. The system's own programs are found first: a
# wrapper of python3 costs more than most tests.
umask 022
if [ -z "${SURROUNDINGS_SET:-}" ]; then
	for name in $(compgen -e); do
		case $name in
		PATH | BUILD | AS | THROUGH | IMAGE | REPORTS | WORLD_* | BATS* | PWD | SHLVL | _) ;;
		*) unset "$name" 2>/dev/null || export -n "${name?}" ;;
		esac
	done
	unset name
	export SURROUNDINGS_SET=yes LC_ALL=C.UTF-8 HOME=/nonexistent PYTHONDONTWRITEBYTECODE=1
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
fi

# processes_of PROGRAM: a line "PID TITLE" for each process that runs it, whatever its title is
processes_of() {
	local place
	find /proc -mindepth 2 -maxdepth 2 -name exe -lname "$1" -printf '%h\n' 2>/dev/null | while read -r place; do
		echo "${place#/proc/} $(tr '\0' ' ' 2>/dev/null <"$place/cmdline")"
	done
}
