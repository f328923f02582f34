#!/usr/bin/env bats
# Library calls on a running sandbox's files, through a small tool (filetool.c).

load helpers

prepare_file() {
	cp "$BUILD/filetool" "$SHARED/"
	started box
}

# tool ACTION WORD...: in the sandbox BOX, by default "box"
tool() {
	as "$SHARED/filetool" "${BOX:-box}" "$@" 3>&-
}

@test "files are written, read in parts, appended to and refused where they are" {
	tool write /tmp/f 'hello world'
	[ "$(tool read /tmp/f)" = "11:hello world" ]
	[ "$(tool read /tmp/f 6 3)" = "11:wor" ]
	tool append /tmp/f '!'
	[ "$(ak exec box cat /tmp/f)" = 'hello world!' ]
	tool write /tmp/f short
	[ "$(ak exec box cat /tmp/f)" = short ]
	run tool new /tmp/f again
	[ "$status" -eq 1 ] && [[ $output == *"already exists"* ]]
	run tool write /tmp/no/such/f x
	[ "$status" -eq 1 ] && [[ $output == *"no '/tmp/no/such/f'"* ]]
	tool deep /tmp/no/such/f x
	[ "$(ak exec box cat /tmp/no/such/f)" = x ]
}

@test "what is made belongs to the sandbox's own user" {
	tool write /tmp/mine x
	[ "$(ak exec box stat -c %u:%a /tmp/mine)" = "$(ak exec box id -u):640" ]
}

@test "directories are made, listed and removed" {
	tool mkdir /tmp/d
	run tool mkdir /tmp/d
	[ "$status" -eq 1 ]
	tool parents /tmp/d/e/f
	tool parents /tmp/d/e/f
	tool write /tmp/d/a text
	ak exec box ln -s a /tmp/d/l
	[ "$(tool list /tmp/d | cut -d' ' -f1 | tr '\n' ' ')" = "a e l " ]
	[[ $(tool list /tmp/d) == *"l 120777 "*" -> a"* ]]
	[[ $(tool stat /tmp/d/a) == *" 100640 "*" 4" ]]
	run tool remove /tmp/d
	[ "$status" -eq 1 ]
	tool remove /tmp/d/a
	tool tree /tmp/d
	run ak exec box test -e /tmp/d
	[ "$status" -eq 1 ]
}

@test "no link, dot or odd file leads out or hangs" {
	mkdir "$W/canary"
	echo outside >"$W/canary/file"
	ak exec box sh -c "ln -s $W/canary /tmp/l; ln -s /../../../..$W/canary/file /tmp/g; mkfifo /tmp/p; ln -s /proc/1/root /tmp/r"
	for path in /tmp/l/file /tmp/g "/..$W/canary/file" "/tmp/../..$W/canary/file" /tmp/r/etc/passwd /proc/self/root/etc/passwd; do
		run tool read "$path"
		[ "$status" -eq 1 ]
		[[ $output != *outside* ]]
	done
	for path in /tmp/p /dev/zero /tmp; do
		run as timeout 5 "$SHARED/filetool" box read "$path"
		[ "$status" -eq 1 ] && [[ $output == *"is not a plain file"* || $output == *"is a directory"* ]]
		run as timeout 5 "$SHARED/filetool" box write "$path" x
		[ "$status" -eq 1 ]
	done
	run tool write /tmp/g overwritten
	run tool tree /tmp/l
	[ "$(cat "$W/canary/file")" = outside ]
	for path in relative ''; do
		run tool read "$path"
		[ "$status" -eq 1 ] && [[ $output == *"not an absolute path"* ]]
	done
}

@test "the sandbox's own limits hold: read-only root, another user's files" {
	BOX=tight
	started tight -p restrictive
	run tool write /x text
	[ "$status" -eq 1 ]
	tool write /tmp/x text
	[ "$(ak exec tight stat -c %u /tmp/x)" = "$(ak exec tight id -u)" ]
	run tool read /proc/1/environ
	[ "$status" -eq 1 ]
}

@test "a sandbox that does not run has no files to look at, and says so" {
	BOX=still
	ak create still
	run tool read /etc/hosts
	[ "$status" -eq 1 ] && [[ $output == *"is not running"* ]]
}

@test "every change from outside is in the audit log" {
	tool write /tmp/f x
	tool mkdir /tmp/d
	run tool write /nosuch/f x
	ak audit --type file --json >"$W/log"
	grep -q '"what":"write /tmp/f","result":"ok"' "$W/log"
	grep -q '"what":"mkdir /tmp/d"' "$W/log"
	grep -q '"what":"write /nosuch/f","result":"no' "$W/log"
}

# bats test_tags=once
@test "an installation in a directory that nobody else may enter copies files and checkpoints" {
	[ "${AS:-root}" = root ] || skip "needs a root caller, whose sandboxes have other ids"
	mkdir -m 700 "$W/closed"
	mkdir -p "$W"/closed/{bin,libexec/agentkernel}
	cp "$SHARED/agentkernel" "$W/closed/bin/"
	cp "$SHARED"/agentkernel-{gate,image} "$W/closed/libexec/agentkernel/"
	# control: another id cannot start it by its path
	run ! setpriv --reuid 12345 --clear-groups sh -c "'$W/closed/libexec/agentkernel/agentkernel-image' 3>&-"
	[[ $output == *"Permission denied"* ]]
	AK=$W/closed/bin/agentkernel
	started closed -i bb
	[ "$(ak exec closed stat -c %u /tmp)" = 0 ]
	echo there and back >"$W/file"
	ak cp "$W/file" closed:/tmp/file
	[ "$(ak exec closed cat /tmp/file)" = "there and back" ]
	ak cp closed:/tmp/file "$W/again"
	cmp "$W/file" "$W/again"
	[ "$(ak cp closed:/tmp/file - | tar -xOf - file)" = "there and back" ]
	tar -cf - -C "$W" file | ak cp - closed:/home
	[ "$(ak exec closed cat /home/file)" = "there and back" ]
	ak checkpoint create closed >"$W/id"
	ak checkpoint export "$(cat "$W/id")" "$W/checkpoint"
	ak checkpoint import "$W/checkpoint"
	ak remove -f closed
}
