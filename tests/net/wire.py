"""wire.py LOG: logs what leaves the host, seen where it arrives: every first packet of a TCP
connection and every other packet, except what IPv6 and ARP need to find neighbours."""
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common  # noqa: E402

NEIGHBOURS = set(range(130, 138)) | {143}
NAMES = {1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 33: "dccp", 58: "icmp6", 132: "sctp"}


def bpf(code, k, jt=0, jf=0):
    return struct.pack("HBBI", code, jt, jf, k)


# Drops TCP packets without SYN in the kernel, because reading a 10 MB upload here would be slow.
FILTER = [
    bpf(0x30, 0),  # A = first byte
    bpf(0x54, 0xF0),  # its upper half: the version
    bpf(0x15, 0x60, 5, 0),  # v6 -> below
    bpf(0x30, 9), bpf(0x15, 6, 0, 7),  # v4: protocol; not tcp -> accept
    bpf(0xB1, 0), bpf(0x50, 13), bpf(0x05, 3),  # X = header length; A = flags
    bpf(0x30, 6), bpf(0x15, 6, 0, 2), bpf(0x30, 53),  # v6: next header; flags
    bpf(0x45, 2, 0, 1),  # SYN?
    bpf(0x06, 0xFFFF), bpf(0x06, 0),
]


def describe(p):
    if p[0] >> 4 == 4:
        at, protocol = (p[0] & 15) * 4, p[9]
        target = socket.inet_ntop(socket.AF_INET, p[16:20])
    else:
        at, protocol = 40, p[6]
        target = socket.inet_ntop(socket.AF_INET6, p[24:40])
        if protocol == 0 and len(p) > 48:  # hop-by-hop options
            protocol, at = p[40], 40 + (p[41] + 1) * 8
    name = NAMES.get(protocol, str(protocol))
    rest = p[at:]
    if protocol == 58 and rest and rest[0] in NEIGHBOURS:
        return None
    if protocol in (6, 17, 33, 132) and len(rest) >= 4:
        port = struct.unpack("!H", rest[2:4])[0]
        mark = ""
        if protocol == 17 and rest[8:13] == b"mark-":
            mark = " " + rest[8:40].decode().strip()
        return f"{name} {target} {port}{mark}"
    return f"{name} {target}"


def main():
    log = common.logger(sys.argv[1])
    s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUFFORCE if hasattr(socket, "SO_RCVBUFFORCE") else 33, 8 << 20)
    code = b"".join(FILTER)
    import ctypes
    held = ctypes.create_string_buffer(code)
    s.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", len(FILTER), ctypes.addressof(held)))
    s.bind(("up0", 3))
    common.ready()
    while True:
        packet, (_, ethertype, kind, *_rest) = s.recvfrom(65535)
        if kind == 4 or ethertype not in (0x800, 0x86DD):  # sent by our side
            continue
        line = describe(packet)
        if line:
            log(line)


main()
