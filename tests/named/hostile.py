#!/usr/bin/env python3
"""What a sandbox could leave on its disk for its own next start, one kind after the other.

hostile.py KIND IMAGE CANARY: as the caller whose sandboxes they are. Each time a new sandbox gets
such things where a directory or file of every root belongs, and is started. It starts, or fails
in one line; nothing of the directory CANARY, which everyone may write, is shown or changed.
"""
import os
import socket
import subprocess
import sys

# Several at once if the sandbox starts; else one by one.
GROUPS = [["usr", "etc", "proc", "dev", "tmp", "home", "var", "run"],
          ["etc/resolv.conf", "etc/hosts", "etc/hostname", "etc/machine-id", "etc/passwd", "dev/pts", "proc/self"],
          ["root"], ["mnt/data"], ["home/user"]]
LOOK = """for d in / /usr /etc /tmp /home /root /var /run /dev /proc /home/user; do
cat $d/secret $d/etc/secret $d/hosts 2>/dev/null; echo written >$d/new; done 2>/dev/null; echo over"""
AK = os.environ["AK"]
STATE = os.environ["AGENTKERNEL_HOME"]


def ak(*words):
    return subprocess.run([AK, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=30)


def plant(kind, upper, place, canary):
    path = os.path.join(upper, place)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if kind == "link":
        os.symlink(canary, path)
    elif kind == "dots":
        os.symlink("../" * 20 + canary.lstrip("/"), path)
    elif kind == "proc":
        os.symlink("/proc/1/root" + canary, path)
    elif kind == "loop":
        os.symlink(os.path.basename(path), path)
    elif kind == "fifo":
        os.mkfifo(path, 0o666)
    elif kind == "socket":
        dir_fd = os.open(os.path.dirname(path), os.O_PATH)
        socket.socket(socket.AF_UNIX).bind("/proc/self/fd/%d/%s" % (dir_fd, os.path.basename(path)))
        os.close(dir_fd)
    elif kind == "file":
        with open(path, "w") as f:
            f.write("a file where a directory belongs\n")
    elif kind == "directory":
        os.makedirs(path + "/in/the/way")
    elif kind == "closed":
        os.mkdir(path)
        os.chmod(path, 0)
    elif kind == "whiteout":
        os.mknod(path, 0o020000, 0)
    else:
        raise SystemExit("no kind " + kind)


def state_of(canary):
    found = []
    for top, dirs, files in os.walk(canary):
        for name in dirs + files:
            st = os.lstat(os.path.join(top, name))
            found.append((top, name, st.st_mode, st.st_uid, st.st_size, st.st_mtime_ns, st.st_ctime_ns))
    return sorted(found)


def check(kind, image, places, canary, data):
    name = "hostile-" + kind
    upper = "%s/sandboxes/%s/disk.0/upper" % (STATE, name)
    made = ak("create", name, "--image", image, "--mount", data + ":/mnt/data")
    if made.returncode:
        return made.stdout
    os.mkdir(upper, 0o755)
    for place in places:
        plant(kind, upper, place, canary)
    started = ak("start", name)
    if started.returncode == 0:
        looked = ak("exec", "-T", name, "/bin/sh", "-c", LOOK)
        if "secret-of-the-host" in looked.stdout:
            return "the host is shown: " + looked.stdout
        stopped = ak("stop", "--timeout", "0s", name)
        if stopped.returncode:
            return stopped.stdout
    elif len(places) > 1:
        ak("remove", "-f", name)
        return next(filter(None, (check(kind, image, [place], canary, data) for place in places)), None)
    elif not started.stdout.startswith("agentkernel: start sandbox '%s': " % name) or started.stdout.count("\n") != 1:
        return "strange words: " + started.stdout
    kept = ak("checkpoint", "create", name)
    if kept.returncode:
        return kept.stdout
    removed = ak("remove", name)
    return removed.stdout if removed.returncode else None


def main():
    kind, image, canary = sys.argv[1:]
    data = canary + "/../data"
    before = state_of(canary)
    for places in GROUPS:
        trouble = check(kind, image, places, canary, data)
        if not trouble and state_of(canary) != before:
            trouble = "the host is changed: %s" % sorted(set(state_of(canary)) ^ set(before))
        if trouble:
            raise SystemExit("%s at %s of %s: %s" % (kind, places, image, trouble))


main()
