# attack.py NAME... - tries everything that a hostile process can do to a name in a directory that
# it may write to, inside a sandbox. A name that ends in "/" is a writable directory: it is only
# moved aside and replaced. Prints what worked; the test checks outside whether it did harm.
import ctypes
import os
import shutil
import sys

libc = ctypes.CDLL(None, use_errno=True)
EXCHANGE = 2


def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), EXCHANGE) < 0:
        raise OSError(ctypes.get_errno(), "exchange")


def fresh(kind):
    """A file or a directory of ours, to be put in the name's place."""
    path = ".attack"
    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        os.unlink(path)
    if kind == "dir":
        os.mkdir(path)
        path_in = os.path.join(path, "pre-commit")
    else:
        path_in = path
    with open(path_in, "w") as f:
        f.write("evil\n")
    return path


def write(name, flags):
    fd = os.open(name, flags, 0o755)
    os.write(fd, b"evil\n")
    os.close(fd)


def fill(name):
    write(os.path.join(name, "evil"), os.O_WRONLY | os.O_CREAT)


def link_to(name):
    os.link(fresh("file"), name)


def move_parent(name):
    parent = os.path.dirname(name)
    if not parent:
        raise OSError(0, "the directory itself")
    os.rename(parent, parent + ".moved")
    os.makedirs(parent)
    write(name, os.O_WRONLY | os.O_CREAT)


changes = [
    ("write", lambda n: write(n, os.O_WRONLY | os.O_APPEND)),
    ("create", lambda n: write(n, os.O_WRONLY | os.O_CREAT)),
    ("truncate", lambda n: os.truncate(n, 0)),
    ("make a directory", os.mkdir),
    ("make directories", os.makedirs),
    ("fill", fill),
    ("change the mode", lambda n: os.chmod(n, 0o777)),
    ("give away", lambda n: os.chown(n, 0, 0)),
    ("rename the parent", move_parent),
]
replacements = [
    ("link to evil", lambda n: os.symlink("/tmp/evil", n)),
    ("hard link", link_to),
    ("rename a file over", lambda n: os.rename(fresh("file"), n)),
    ("rename a directory over", lambda n: os.rename(fresh("dir"), n)),
    ("exchange with a file", lambda n: exchange(fresh("file"), n)),
    ("exchange with a directory", lambda n: exchange(fresh("dir"), n)),
    ("rename away", lambda n: os.rename(n, n + ".moved")),
    ("remove", os.unlink),
    ("remove a directory", os.rmdir),
    ("create again", lambda n: write(n, os.O_WRONLY | os.O_CREAT | os.O_EXCL)),
]

os.umask(0)
for argument in sys.argv[1:]:
    name = argument.rstrip("/")
    for what, way in ([] if argument != name else changes) + replacements:
        try:
            way(name)
        except OSError:
            continue
        print(f"{what}: {name}")
shutil.rmtree(".attack", ignore_errors=True)
if os.path.lexists(".attack"):
    os.unlink(".attack")
