"""dns.py LOG ROGUE-LOG ROGUE-ADDRESS: the world's name server, over UDP and TCP.

Logs each question as "udp A www.allowed.test". ROGUE-ADDRESS is a second server, which nobody
was told about: it has the same answers and a log of its own."""
import os
import selectors
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common  # noqa: E402

A, CNAME, PTR, MX, TXT, AAAA, SRV = 1, 5, 12, 15, 16, 28, 33
TYPES = {1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV",
         64: "SVCB", 65: "HTTPS", 255: "ANY"}
WWW, WWW6 = "93.184.216.34", "2a00:1450:4001::34"
NAMES = {
    "*.allowed.test": [(A, WWW)],
    "allowed.test": [(A, WWW)],
    "other.test": [(A, "93.184.216.35")],
    "denied.test": [(A, "93.184.216.36"), (AAAA, "2a00:1450:4001::36")],
    "fronted.test": [(A, WWW)],  # shares an address with www.allowed.test
    "private.test": [(A, "10.9.8.7")],
    "private6.test": [(AAAA, "fd77::7")],
    "mixed.test": [(A, "10.9.8.7"), (A, WWW)],
    "mapped.test": [(AAAA, "::ffff:10.9.8.7")],
    "nat64.test": [(AAAA, "64:ff9b::a09:807")],
    "6to4.test": [(AAAA, "2002:a09:807::1")],
    "teredo.test": [(AAAA, "2001::7")],
    "cgnat.test": [(A, "100.64.7.7")],
    "loopback.test": [(A, "127.0.0.1"), (AAAA, "::1")],
    "zero.test": [(A, "0.0.0.0"), (AAAA, "::")],
    "hostown.test": [(A, "93.184.217.2"), (AAAA, "2a00:1450:4017::2")],
    "second.test": [(A, "93.184.220.2")],
    "second6.test": [(AAAA, "2a00:1450:4020::2")],
    "routed.test": [(A, "93.184.221.7")],
    "routed6.test": [(AAAA, "2a00:1450:4021::7")],
    "bridge.test": [(A, "172.17.0.1")],
    "linklocal.test": [(A, "169.254.169.254")],
    "metadata.google.internal": [(A, "169.254.169.254")],
    "rebind.test": [],  # changes with each query, below
    "cname.test": [(CNAME, "www.allowed.test")],
    "cname-private.test": [(CNAME, "private.test")],
    "v6only.test": [(AAAA, WWW6)],
    "both.test": [(A, WWW), (AAAA, WWW6)],
    "slow.test": [(A, WWW)],
    "truncated.test": [(A, WWW)],
    "many.test": [(A, "93.184.216.99")] * 1 + [(A, f"93.184.219.{i}") for i in range(60)],
    "dead-first.test": [(A, "93.184.216.99"), (A, WWW)],
    "dead-v6.test": [(A, WWW), (AAAA, "2a00:1450:4001::99")],
    "hole.test": [(A, "93.184.218.1"), (A, WWW)],
    "pit.test": [(A, "93.184.218.1")],
    "text.test": [(TXT, "some text")],
    "cluster.test": [(A, WWW), (TXT, ["authSource=", "admin"]), (TXT, "v=spf1 -all"), (MX, (10, "mail.cluster.test")),
                     (MX, (20, "denied.test"))],
    "_mongodb._tcp.cluster.test": [(SRV, (0, 5, 27017, "Shard-0.cluster.test")), (SRV, (1, 0, 2000, "tcp.allowed.test"))],
    "_mongodb._tcp.denied.test": [(SRV, (0, 5, 27017, "denied.test"))],
    "_none._tcp.cluster.test": [(SRV, (0, 0, 0, "."))],
    "_alias.cluster.test": [(CNAME, "text.test")],
    "big.test": [(TXT, ["x" * 200, str(i)]) for i in range(38)],  # just below the gate's maximum
    "huge.test": [(TXT, "x")] * 129,
    "large.test": [(TXT, "x" * 255)] * 33,
    "hostile.test": [(MX, b"\0\1\3a\nb\0"), (MX, b"\0\2\4\x1b[2J\0"), (MX, b"\0\3\3a.b\0"), (MX, (4, "good.test"))],
    "loop.test": [(MX, b"\0\1\1x\xc0\x32")],  # x.x.x. ...: the data begins at byte 48
    "short.test": [(TXT, b"\x20only this")],
}
rebound = {"count": 0}


def read_name(data, at):
    labels = []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels).lower(), at + 1


def pack_name(name):
    return b"".join(bytes([len(label)]) + label.encode("latin-1") for label in name.split(".") if label) + b"\0"


def pack_data(kind, value):
    if kind == A:
        return socket.inet_aton(value)
    if kind == AAAA:
        return socket.inet_pton(socket.AF_INET6, value)
    if isinstance(value, bytes):  # malformed on purpose
        return value
    if kind == TXT:
        return b"".join(bytes([len(v)]) + v.encode() for v in ([value] if isinstance(value, str) else value))
    if kind in (MX, SRV):
        return struct.pack("!%dH" % (len(value) - 1), *value[:-1]) + pack_name(value[-1])
    return pack_name(value)


def find(name, kind):
    if name == "rebind.test" and kind == A:
        rebound["count"] += 1
        return [(A, WWW if rebound["count"] % 3 == 1 else "10.9.8.7")]
    if name in NAMES:
        return NAMES[name]
    parts = name.split(".")
    for i in range(1, len(parts)):
        wild = "*." + ".".join(parts[i:])
        if wild in NAMES:
            return NAMES[wild]
    return None


def records(name, kind):
    """(rcode, [(owner, type, value)])"""
    answers = []
    for _ in range(8):
        found = find(name, kind)
        if found is None:
            return 3, answers
        alias = [v for k, v in found if k == CNAME]
        if not alias:
            return 0, answers + [(name, k, v) for k, v in found if k == kind]
        answers.append((name, CNAME, alias[0]))
        name = alias[0]
    return 2, answers


def answer(data, transport, log):
    ident, flags, questions = struct.unpack("!HHH", data[:6])
    if flags & 0x8000 or questions != 1:
        return None
    name, end = read_name(data, 12)
    kind = struct.unpack("!H", data[end:end + 2])[0]
    question = data[12:end + 4]
    log(f"{transport} {TYPES.get(kind, kind)} {name}")
    if name == "slow.test":
        time.sleep(2)
    if name == "truncated.test" and transport == "udp":
        return struct.pack("!HHHHHH", ident, 0x8780, 1, 0, 0, 0) + question
    rcode, found = records(name, kind)
    ttl = 0 if name == "rebind.test" else 60
    body = question
    for owner, k, value in found:
        data = pack_data(k, value)
        body += pack_name(owner) + struct.pack("!HHIH", k, 1, ttl, len(data)) + data
    reply = struct.pack("!HHHHHH", ident, 0x8580 | rcode, 1, len(found), 0, 0) + body
    if transport == "udp" and len(reply) > 512:
        return struct.pack("!HHHHHH", ident, 0x8780, 1, 0, 0, 0) + question
    return reply


def on_udp(s, data, peer, log):
    try:
        reply = answer(data, "udp", log)
    except (IndexError, ValueError, struct.error):
        log("malformed")
        return
    if reply:
        s.sendto(reply, peer)


def on_tcp(c, log):
    with c, c.makefile("rb") as f:
        while len(head := f.read(2)) == 2:
            try:
                reply = answer(f.read(struct.unpack("!H", head)[0]), "tcp", log)
            except (IndexError, ValueError, struct.error):
                log("malformed")
                return
            if reply:
                c.sendall(struct.pack("!H", len(reply)) + reply)


def main():
    waiter = selectors.DefaultSelector()
    for address, log in (("93.184.216.53", common.logger(sys.argv[1])), (sys.argv[3], common.logger(sys.argv[2]))):
        waiter.register(common.bind(address, 53, socket.SOCK_DGRAM), selectors.EVENT_READ, log)
        waiter.register(common.bind(address, 53), selectors.EVENT_READ, log)
    common.ready()
    while True:
        for key, _ in waiter.select():
            if key.fileobj.type == socket.SOCK_DGRAM:
                args = (key.fileobj, *key.fileobj.recvfrom(4096), key.data)
                if b"\x04slow\x04test" in args[1]:
                    threading.Thread(target=on_udp, args=args, daemon=True).start()
                else:
                    on_udp(*args)
            else:
                connection, _ = key.fileobj.accept()
                threading.Thread(target=on_tcp, args=(connection, key.data), daemon=True).start()


main()
