#!/usr/bin/env bats
# Archives and copies of files with other owners, as root inside: in a workspace, where a root
# caller's sandbox has one owner, and everywhere in the sandbox of an ordinary caller with one id.
load helpers
bats_require_minimum_version 1.5.0

FOREIGN_ID=2147352576 # IDMAP_FOREIGN_ID

# foreign.tar: files of 1234:1235 in "tree"
make_archive() {
	as mkdir -p tree/dir
	as sh -c 'echo text >tree/file; echo more >tree/dir/file; ln -sf file tree/link'
	as tar --owner=1234 --group=1235 --numeric-owner -cf foreign.tar tree
	as rm -r tree
}

# owners PATH: as on disk
owners() {
	stat -c %u:%g "$1"
}

# What tools that preserve owners do, in the current directory.
unpack_all() {
	cat <<-'E'
		set -e
		mkdir tar busybox copy
		tar -C tar -xf foreign.tar
		if command -v busybox >/dev/null; then busybox tar -C busybox -xf foreign.tar; else cp -a tar/tree busybox; fi
		cp -a tar/tree copy
		cp -a /usr/share/common-licenses copy # of the machine's root, nobody inside
		! command -v rsync >/dev/null || rsync -a tar/tree/ rsync
		python3 -c 'import tarfile; tarfile.open("foreign.tar").extractall("python")'
		for dir in tar busybox copy python; do
			cat $dir/tree/dir/file
		done
	E
}

@test "tar, cp -a, rsync and python unpack what belongs to others in a workspace" {
	make_archive
	run ak run --workspace sh -c "$(unpack_all)"
	says "more
more
more
more"
}

@test "and in the sandbox's own /tmp" {
	make_archive
	run ak run --mount "$W:/in:ro" sh -c "cd /tmp; cp /in/foreign.tar .; $(unpack_all)"
	says "more
more
more
more"
}

@test "dpkg installs a package whose files belong to others" {
	only_host
	as mkdir -p pkg/DEBIAN pkg/opt/tool
	as sh -c 'printf "Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n" >pkg/DEBIAN/control; echo data >pkg/opt/tool/data'
	as mkdir -p data
	as tar --owner=1234 --group=1235 --numeric-owner -C pkg -cf data/data.tar ./opt
	as tar -C pkg/DEBIAN -cf data/control.tar ./control
	as sh -c 'cd data && echo 2.0 >debian-binary && ar r tool.deb debian-binary control.tar data.tar 2>/dev/null'
	run ak run --workspace sh -c 'mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates && : >root/var/lib/dpkg/status &&
		dpkg --root="$PWD/root" --force-all --log=/dev/null -i data/tool.deb >/dev/null 2>&1; cat root/opt/tool/data; dpkg-deb -x data/tool.deb out && cat out/opt/tool/data'
	says "data
data"
}

@test "npm installs a package from an archive of others" {
	only_host
	command -v npm >/dev/null || skip "no npm here"
	as mkdir package
	as sh -c 'echo "{\"name\":\"tool\",\"version\":\"1.0.0\"}" >package/package.json; echo "module.exports = 42" >package/index.js'
	as tar --owner=1234 --group=1235 --numeric-owner -czf tool.tgz package
	run ak run --workspace --no-network sh -c 'npm install --offline --no-audit --no-fund ./tool.tgz >/dev/null && node -p "require(\"tool\")"'
	says 42
}

@test "root's sandbox: owners are kept, and on disk they are nobody's" {
	only_root
	make_archive
	run ak run --workspace sh -c 'tar xf foreign.tar; stat -c %u:%g tree/file; chown 7:8 tree; stat -c %u:%g tree; touch new; stat -c %u:%g new'
	says "1234:1235
7:8
0:0"
	[ "$(owners tree/file)" = "$((FOREIGN_ID + 1234)):$((FOREIGN_ID + 1235))" ]
	[ "$(owners new)" = 0:0 ]
	# they are visible to the next sandbox, also with another user
	run ak run --workspace stat -c %u:%g tree/file
	says 1234:1235
	run ak run --workspace -u 1234:1235 sh -c 'id -u; stat -c %u:%g tree/file new'
	says "1234
$(printf '65534:65534\n1234:1235')"
}

@test "root's sandbox: a workspace that was given away as a whole can still be used" {
	only_root
	ak run --workspace chown 77:77 .
	[ "$(owners .)" = "$((FOREIGN_ID + 77)):$((FOREIGN_ID + 77))" ]
	run ak run --workspace sh -c 'echo text >file && stat -c %u:%g . file'
	says "0:0
0:0"
	[ "$(owners file)" = "$((FOREIGN_ID + 77)):$((FOREIGN_ID + 77))" ]
}

@test "root's sandbox: files of others on this machine stay out of reach" {
	only_root
	echo secret >theirs
	chown 4321:4321 theirs
	chmod 600 theirs
	run ak run --workspace sh -c 'chown 0:0 theirs; chmod 666 theirs; cat theirs'
	[[ "$output" != *secret* ]]
	[ "$(stat -c %u:%g:%a theirs)" = 4321:4321:600 ]
}

@test "one id: giving files away is no error and changes nothing; all else is what the kernel says" {
	only_user
	run ak run --workspace python3 -c '
import os
open("f", "w").close()
fd = os.open("f", os.O_RDWR)
for give in (lambda u, g: os.chown("f", u, g), lambda u, g: os.lchown("f", u, g), lambda u, g: os.chown(fd, u, g)):
    give(1234, 1235); give(1234, -1); give(-1, 1235); give(0, 1235); give(0, 0); give(-1, -1)
st = os.stat("f")
print(st.st_uid, st.st_gid)
for path, ids in (("missing", (0, 0)), ("/usr/bin/env", (0, 0)), ("/usr/bin/env", (-1, 0))):
    try:
        os.chown(path, *ids)
    except OSError as e:
        print(path, e.strerror)
'
	says "0 0
missing No such file or directory
/usr/bin/env Read-only file system
/usr/bin/env Read-only file system"
	[ "$(owners f)" = 12345:12345 ]
	# a user other than root inside gets the real error
	run ak run -p restrictive python3 -c 'import os; os.chown("/tmp", 1234, -1)'
	[[ "$output" == *"Invalid argument"* ]]
}
