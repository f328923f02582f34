"""tcp.py LOG ADDRESS...: small servers, each connection a thread and a line in LOG.

  7     echo (UDP too)
  2000  speaks first: a banner, then answers "you said LINE"
  2001  reads until the end, then answers with the count and closes
  2002  resets after the first byte
  2003  never says anything
  2004  sends 20 MB
  2005  reads slowly until the end and logs the count
"""
import os
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common  # noqa: E402


def echo(c):
    while data := c.recv(65536):
        c.sendall(data)


def banner(c):
    c.sendall(b"220 welcome\r\n")
    line = c.makefile("rb").readline()
    c.sendall(b"you said " + line)


def count(c):
    total = 0
    while data := c.recv(1 << 20):
        total += len(data)
    c.sendall(b"%d bytes\n" % total)


def reset(c):
    c.recv(1)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(c):
    while c.recv(65536):
        pass


def big(c):
    for _ in range(20):
        c.sendall(b"x" * 1000000)


def tally(c):
    total = 0
    while data := c.recv(1 << 16):
        total += len(data)
        time.sleep(0.001)
    log(f"2005 got {total}")


log = common.logger(sys.argv[1])
SERVERS = {7: echo, 2000: banner, 2001: count, 2002: reset, 2003: silent, 2004: big, 2005: tally}


def serve(connection, act):
    with connection:
        try:
            act(connection)
        except OSError:
            pass


def listen(s, act, name):
    while True:
        connection, _ = s.accept()
        log(f"tcp {name}")
        threading.Thread(target=serve, args=(connection, act), daemon=True).start()


def datagrams(s, name):
    while True:
        data, peer = s.recvfrom(65535)
        log(f"udp {name}")
        s.sendto(data, peer)


def main():
    threads = []
    for address in sys.argv[2:]:
        for port, act in SERVERS.items():
            threads.append(threading.Thread(target=listen, args=(common.bind(address, port), act, f"{address} {port}")))
        for port in (7, 443):
            s = common.bind(address, port, socket.SOCK_DGRAM)
            threads.append(threading.Thread(target=datagrams, args=(s, f"{address} {port}")))
    for t in threads:
        t.start()
    common.ready()


main()
