#!/usr/bin/env bats
# Protected, masked and mounted paths also hold for operations on files from outside: every
# operation of the command line and the servers on every such path. From another mount namespace the
# kernel would allow to remove a mount point and drop the mount; then a command inside could write
# the host's file.

load helpers

# Relative to the workspace. prepare_file creates what is there.
PROTECTED=(.git/config .git/hooks .git/hooks/pre-commit .vscode .vscode/tasks.json .claude .claude/settings.json
	.mcp.json)
MASKED=(.env)
MOUNTED=(shown shown/file)

prepare_file() {
	export P=$SHARED/work/project
	cp "$BUILD/filetool" "$SHARED/"
	mkdir -p "$P/.git/hooks" "$P/.git/objects" "$P/.git/refs" "$P/.vscode" "$P/.claude" "$P/shown" "$SHARED/work/source"
	echo 'ref: refs/heads/main' >"$P/.git/HEAD"
	for name in .git/config .git/hooks/pre-commit .vscode/tasks.json .claude/settings.json .mcp.json .env; do
		echo good >"$P/$name"
	done
	echo good >"$SHARED/work/source/file"
	echo evil >"$SHARED/work/evil"
	give -R "$P" "$SHARED/work/source" "$SHARED/work/evil" "$SHARED/work"
	(cd "$P" && started box --workspace --mask .env --mount "$SHARED/work/source:$P/shown:ro")
}

# A server for this test, on $SOCKET.
serve() {
	SOCKET=$SHARED/home/api-$BATS_TEST_NUMBER.sock
	as "$AK" serve --listen "unix:$SOCKET" -i host --workspace="$P" --mask .env \
		--mount "$SHARED/work/source:$P/shown:ro" >"$SHARED/serve.log" 2>&1 3>&- &
	shell=$!
	for _ in $(seq 100); do
		if [ -S "$SOCKET" ]; then
			pgrep -P "$shell" >>"$SHARED/pids" # a child of the shell that runs as()
			return 0
		fi
		sleep 0.05
	done
	cat "$SHARED/serve.log"
	return 1
}

snapshot() {
	(cd "$P" && find . "$SHARED/work/source" -printf '%p %y %m %i\n' | sort
		find . "$SHARED/work/source" -type f -print0 | sort -z | xargs -0 -r sha256sum)
}

tool() {
	as "$SHARED/filetool" box "$@" 3>&-
}

# Every way to change a path from outside.
change() {
	case $1 in
	write | append | new | deep) tool "$1" "$2" evil ;;
	mkdir | parents | remove | tree) tool "$1" "$2" ;;
	cp) ak cp "$SHARED/work/evil" "box:$2" ;;
	tar) tar -C "$SHARED/work" -cf - --transform "s,.*,${2#/}," evil | as "$AK" cp - box:/ ;;
	http-put) curl -sS --fail-with-body --unix-socket "$SOCKET" -X PUT -H 'Content-Type: application/json' \
		-d '{"content":"evil"}' "http://localhost/sandboxes/box/files${2}" ;;
	http-delete) curl -sS --fail-with-body --unix-socket "$SOCKET" -X DELETE "http://localhost/sandboxes/box/files${2}" ;;
	esac
}

# held PATH: nothing outside has changed, and it still cannot be changed inside
held() {
	[ "$(snapshot)" = "$before" ] || { diff <(echo "$before") <(snapshot); return 1; }
	run ak exec box sh -c "echo evil >'$1' || mkdir '$1/evil' 2>/dev/null"
	[ "$(snapshot)" = "$before" ] || { echo "written inside afterwards"; return 1; }
}

@test "no operation of any face lifts a protection, a mask or a mount" {
	local path before changes
	before=$(snapshot)
	serve
	changes=(write append new deep mkdir parents remove tree cp tar http-put http-delete)
	for path in "${PROTECTED[@]}" "${MASKED[@]}" "${MOUNTED[@]}"; do
		for way in "${changes[@]}"; do
			run change "$way" "$P/$path"
			case $way:$path in
			# an existing directory is success; copying into a directory fails as well
			parents:*/hooks | parents:*.vscode | parents:*.claude | parents:shown) ;;
			*) [ "$status" -ne 0 ] || { echo "$way of $path succeeded: $output"; return 1; } ;;
			esac
			held "$P/$path" || { echo "after $way of $path"; return 1; }
		done
	done
	[[ $(tool read "$P/.env") == 0:* ]] # also masked for readers
}

@test "the operations work where nothing is protected, so their refusals mean something" {
	local way
	serve
	for way in write append deep remove tree cp tar http-put http-delete; do
		ak exec box sh -c "echo good >$P/free"
		run change "$way" "$P/free"
		[ "$status" -eq 0 ] || { echo "$way: $output"; return 1; }
		[ "$(cat "$P/free" 2>/dev/null)" != good ] || { echo "$way changed nothing"; return 1; }
		ak exec box rm -f "$P/free"
	done
}

@test "a refusal says why" {
	run tool remove "$P/.git/config"
	[[ $output == *"'$P/.git/config' is protected, masked or mounted in this sandbox"* ]]
	run ak cp "$SHARED/work/evil" "box:$P/.git/config"
	[[ $output == *"it is protected, masked or mounted"* ]]
}
