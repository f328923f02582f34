"""tree.py DIR: a line for all there is about each file beneath it, to compare two trees.

Type, mode, owner, size, time of change to the nanosecond, what it is a hard link of, what a symbolic
link says, the attributes that images carry, and the content's digest. --owners=no leaves owners out.
"""
import hashlib
import os
import stat
import sys


def describe(path, name, seen, has_owners):
    found = os.lstat(path)
    kind = stat.S_IFMT(found.st_mode)
    parts = [name, oct(found.st_mode), str(found.st_mtime_ns)]
    if has_owners:
        parts.append(f"{found.st_uid}:{found.st_gid}")
    if kind == stat.S_IFLNK:
        parts.append("-> " + os.readlink(path))
    if kind == stat.S_IFREG:
        with open(path, "rb") as file:
            parts.append(f"{found.st_size} {hashlib.sha256(file.read()).hexdigest()}")
    if kind != stat.S_IFDIR:
        parts.append("same as " + seen.setdefault((found.st_dev, found.st_ino), name))
    for attribute in sorted(os.listxattr(path, follow_symlinks=False)):
        is_carried = attribute.startswith("user.") and not attribute.startswith("user.overlay.")
        if is_carried or (attribute == "security.capability" and has_owners):
            parts.append(f"{attribute}={os.getxattr(path, attribute, follow_symlinks=False)!r}")
    return "\t".join(parts)


def main():
    has_owners = "--owners=no" not in sys.argv
    root, seen = os.fsencode(sys.argv[1]), {}
    names = []
    for folder, folders, files in os.walk(root):
        names += [os.path.join(folder, name) for name in folders + files]
    for path in sorted(names):
        name = repr(path[len(root) + 1 :])
        print(describe(os.fsdecode(path), name, seen, has_owners))


main()
