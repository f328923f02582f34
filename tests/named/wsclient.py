"""wsclient.py URL [STEP...]: a WebSocket client (RFC 6455) for the tests.

Steps: bin:TEXT (binary message, \\xNN escapes), text:TEXT, raw:HEX (bytes as they are), big:SIZE (a binary message), wait:TEXT (until the output contains
it), sleep:SECONDS, drop (end without a close). Then it reads until the server closes. Prints each message: "text ...",
"bin ...", and "close CODE".
"""
import base64
import os
import socket
import struct
import sys
import time
import urllib.parse


class Client:
    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.s = socket.create_connection((parts.hostname, parts.port), 20)
        key = base64.b64encode(os.urandom(16)).decode()
        extra = os.environ.get("HEADERS", "")
        host = os.environ.get("HOST", parts.netloc)
        path = parts.path + ("?" + parts.query if parts.query else "")
        self.s.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n{extra}\r\n").encode())
        self.data = b""
        self.seen = ""
        while b"\r\n\r\n" not in self.data:
            piece = self.s.recv(65536)
            if not piece:
                break
            self.data += piece
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        status = head.split(b" ")[1].decode()
        if status != "101":
            print("status", status)
            sys.exit(1)

    def send(self, opcode, payload):
        mask = os.urandom(4)
        n = len(payload)
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | n) if n < 126 else \
            struct.pack("!BBH", 0x80 | opcode, 0xfe, n) if n < 65536 else struct.pack("!BBQ", 0x80 | opcode, 0xff, n)
        self.s.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload)))

    def need(self, n):
        while len(self.data) < n:
            piece = self.s.recv(65536)
            if not piece:
                return False
            self.data += piece
        return True

    def message(self):
        """One message printed; False at the end."""
        if not self.need(2):
            print("end")
            return False
        n, at = self.data[1] & 127, 2
        if n >= 126:
            size = 2 if n == 126 else 8
            if not self.need(2 + size):
                return False
            n, at = int.from_bytes(self.data[2:2 + size], "big"), 2 + size
        if not self.need(at + n):
            return False
        opcode, payload = self.data[0] & 15, self.data[at:at + n]
        self.data = self.data[at + n:]
        if opcode == 8:
            print("close", int.from_bytes(payload[:2], "big"))
            return False
        if opcode == 9:
            self.send(10, payload)
        if opcode in (1, 2):
            text = payload.decode("utf-8", "backslashreplace")
            self.seen += text
            if len(payload) < 4000:
                print("text" if opcode == 1 else "bin", text if opcode == 1 else repr(payload)[2:-1], flush=True)
            else:
                print("bin", len(payload), "bytes")
        return True


def main():
    c = Client(sys.argv[1])
    for step in sys.argv[2:]:
        kind, _, value = step.partition(":")
        if kind == "bin":
            c.send(2, value.encode().decode("unicode_escape").encode("latin-1"))
        elif kind == "text":
            c.send(1, value.encode())
        elif kind == "big":
            try:
                c.send(2, bytes(int(value)))
            except OSError:
                pass
        elif kind == "raw":
            c.s.sendall(bytes.fromhex(value))
        elif kind == "wait":
            while value not in c.seen and c.message():
                pass
        elif kind == "sleep":
            time.sleep(float(value))
        elif kind == "drop":
            os._exit(0)
    while c.message():
        pass


main()
