"""canary.py LOG ADDRESS/PORT|unix:NAME...: listens where nobody from a sandbox may come, over TCP and
UDP, or on a Unix socket (unix:@NAME is an abstract one).
Each connection and datagram is a line in LOG, and is answered "canary" in HTTP."""
import os
import selectors
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common  # noqa: E402

REPLY = b"HTTP/1.0 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\ncanary\n"


def main():
    log = common.logger(sys.argv[1])
    waiter = selectors.DefaultSelector()
    for place in sys.argv[2:]:
        if place.startswith("unix:"):
            s = socket.socket(socket.AF_UNIX)
            s.bind(place[5:].replace("@", "\0", 1))
            s.listen()
            waiter.register(s, selectors.EVENT_READ, (place, "-"))
            continue
        address, port = place.rsplit("/", 1)
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            waiter.register(common.bind(address, int(port), kind), selectors.EVENT_READ, (address, port))
    common.ready()
    leaving = []
    while True:
        for key, _ in waiter.select():
            address, port = key.data
            if key.fileobj.type == socket.SOCK_DGRAM:
                _, peer = key.fileobj.recvfrom(2048)
                log(f"udp {address} {port}")
                key.fileobj.sendto(b"canary", peer)
            else:
                connection, _ = key.fileobj.accept()
                log(f"tcp {address} {port}")
                try:
                    connection.sendall(REPLY)
                    connection.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                # closed later: closing with unread input would reset, and lose the answer
                leaving.append(connection)
                if len(leaving) > 50:
                    leaving.pop(0).close()


main()
