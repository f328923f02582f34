#!/usr/bin/env python3
"""Speaks to a supervisor as no client should. control.py SOCKET ACT: prints what happened."""
import array
import os
import random
import socket
import struct
import sys
import time

MAGIC = 0x6B666B61
VERSION = 2
EXEC, SIGNAL, ATTACH, PS, STOP, PAUSE, RESUME, FREEZE, STATS, FILES, RELOAD, INFO = range(100, 112)
OK, FAILED = 200, 201


def connect(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fd = os.open(os.path.dirname(path), os.O_PATH)
    try:
        s.connect("/proc/self/fd/%d/%s" % (fd, os.path.basename(path)))
    finally:
        os.close(fd)
    s.settimeout(10)
    return s


def frame(kind, body=b"", version=VERSION, length=None, magic=MAGIC, in_file=0):
    return struct.pack("=IHHII", magic, version, in_file, kind, len(body) if length is None else length) + body


def answer(s):
    """'ok', 'failed WORDS', 'closed'"""
    try:
        data = s.recv(1 << 20)
    except (ConnectionResetError, BrokenPipeError):
        return "closed"
    if not data:
        return "closed"
    kind = struct.unpack("=IHHII", data[:16])[3]
    text = data[16:]
    words = max(text.split(b"\0"), key=len).decode("utf-8", "replace") if kind == FAILED else ""
    return "ok" if kind == OK else ("failed " + words).strip()


def send(s, data, fds=()):
    extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    try:
        s.sendmsg([data], extra)
    except (ConnectionResetError, BrokenPipeError):
        return "closed"
    return answer(s)


def garbage(path):
    seed = int(os.environ.get("SEED", "1"))
    r = random.Random(seed)
    for i in range(300):
        s = connect(path)
        kind = r.choice([EXEC, SIGNAL, ATTACH, STATS, INFO, PS, RELOAD, 7, 0, 2**32 - 1])
        body = bytes(r.randrange(256) for _ in range(r.randrange(400)))
        shape = i % 6
        if shape == 0:
            data = body or b"x"
        elif shape == 1:
            data = frame(kind, body, length=r.randrange(2**32))
        elif shape == 2:
            data = frame(kind, body, magic=r.randrange(2**32))
        elif shape == 3:
            data = frame(kind, body, version=r.choice([0, 1, VERSION + 1, 65535]))
        elif shape == 4:
            data = frame(kind, body)[:r.randrange(1, 16)]
        else:
            data = frame(kind if kind not in (STATS, INFO, PS, RELOAD) else EXEC, body)
        fds = [os.open("/dev/null", os.O_RDWR) for _ in range(r.choice([0, 0, 1, 4, 20]))]
        said = send(s, data, fds)
        if said == "ok":
            raise SystemExit("seed %d, round %d: taken for a request: %r" % (seed, i, data))
        for fd in fds:
            os.close(fd)
        s.close()
    print("done")


def half(path):
    for kind in (EXEC, SIGNAL, ATTACH, STOP):
        s = connect(path)
        print(send(s, frame(kind, b"half")))
    s = connect(path)
    print(send(s, frame(STATS)[:10]))


def version(path):
    s = connect(path)
    print(send(s, frame(INFO, version=VERSION + 1)))


def idle(path, count):
    """So many connections that say nothing; then those that came late are told."""
    held = []
    refused = 0
    for _ in range(count):
        s = connect(path)
        held.append(s)
    for s in held[500:]:
        s.settimeout(0.05)
        try:
            refused += s.recv(1 << 16) != b"never"
        except (TimeoutError, socket.timeout):
            pass
    print("refused", refused, flush=True)
    sys.stdin.readline()
    for s in held:
        s.close()


def freeze(path):
    """Freezes for so many seconds (0.2), and dies."""
    s = connect(path)
    print(send(s, frame(FREEZE)), flush=True)
    time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 0.2)


def unread(path):
    """Asks and asks, and reads nothing."""
    s = connect(path)
    s.setblocking(False)
    sent = 0
    try:
        while sent < 100000:
            s.send(frame(PS))
            sent += 1
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        pass
    print("asked", sent > 10, flush=True)
    time.sleep(1)


def main():
    act, path = sys.argv[2], sys.argv[1]
    if act == "idle":
        idle(path, int(sys.argv[3]))
    else:
        {"garbage": garbage, "half": half, "version": version, "freeze": freeze, "unread": unread}[act](path)


main()
