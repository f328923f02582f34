"""faulty.py: a reverse proxy in front of a registry that does one thing wrong, on purpose.

    faulty.py --upstream HOST:PORT [--port N] [--other-port N] [--cert FILE --key FILE]
              [--log FILE] [--control FILE] [FAULT...]

Two listeners on 127.0.0.1. The first is the registry that a client is told of; the faults happen
there. The second ("other") hands out blobs without faults and without asking who wants them: the
place that blobs are redirected to. With --cert and --key the first one speaks TLS. When both are ready, one line on stdout says their ports. Ports
that are not given are free ones. Runs until it is killed.

A fault is NAME or NAME=VALUE[,VALUE]. With --control, the faults are the words of that file, read
anew for each request; a fault that counts starts counting again when its words change.

    cut=N[,M]             end the connection after N bytes of a blob's body, M times (always)
    flip[=M]              one byte of each blob is another, M times (always)
    wrong=DIGEST          the same for this blob alone
    swap                  one byte of each manifest is another
    status=CODE,K[,AFTER] the next K requests get this status, with Retry-After when given
    blob-status=CODE,K[,AFTER]   the same for blobs alone
    slow=N                blobs come at N bytes a second
    stall                 a blob's headers come, its bytes never do
    mute                  requests are read and never answered
    redirect[=HOST]       blobs are redirected to the other listener, under HOST (127.0.0.1)
    away[=ADDRESS]        blobs are redirected to ADDRESS; without one, to nowhere
    other-denies          the other listener answers 401, with a challenge that names our realm
    loop                  every request is redirected to itself
    ignore-range          Range is not obeyed: 200 and everything
    wrong-range           206, but another part than was asked for
    short=N               a blob ends, as if complete, after N bytes
    extra=N               N bytes more than the blob has
    lie=N                 Content-Length says N bytes more than come
    endless-body          manifests never end
    endless-headers       headers never end
    basic=USER:PASSWORD   wants basic credentials
    token=USER:PASSWORD[,USES]   wants a bearer token; the realm, here, wants basic credentials and
                          gives a token that is good for so many requests (always). USER "" takes
                          anybody. An identity token in a POST must be PASSWORD
    realm=ADDRESS         the realm that a challenge names, instead of ours
    token-size=N          tokens have N bytes
    token-deep            the realm answers with JSON of great depth
    token-status=CODE,K   the next K requests to the realm get this status

The log has one line for each request: listener, method, path, status, and what of interest the
client sent: "auth=none|basic|bearer range=... agent=...". Secrets are not logged.
"""
import argparse
import base64
import http.client
import http.server
import secrets
import socketserver
import ssl
import sys
import threading
import time
import urllib.parse

PIECE = 65536
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Faults:
    """The words of the command line or the control file, and how often each has happened."""

    def __init__(self, words, control):
        self.words, self.control = words, control
        self.counts, self.lock = {}, threading.Lock()

    def get(self, name):
        """The values of a fault as a list of text; None when it is not on."""
        for word in self.current():
            key, _, value = word.partition("=")
            if key == name:
                return value.split(",") if value else []
        return None

    def current(self):
        if not self.control:
            return self.words
        try:
            with open(self.control, encoding="utf-8") as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def take(self, name, times):
        """True as long as the fault has happened fewer than `times` times; None is always."""
        if times is None:
            return True
        key = (name, tuple(self.get(name)))
        with self.lock:
            count = self.counts.get(key, 0)
            self.counts[key] = count + 1
        return count < int(times)


class Tokens:
    """What the realm has given out."""

    def __init__(self):
        self.left, self.lock = {}, threading.Lock()

    def issue(self, uses, size):
        token = secrets.token_hex(16)
        token += "x" * (size - len(token))
        with self.lock:
            self.left[token] = uses
        return token

    def spend(self, token):
        with self.lock:
            left = self.left.get(token, 0)
            if left == 0:
                return False
            if left > 0:
                self.left[token] = left - 1
            return True


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "faulty", ""

    # ---- plumbing ----

    def log_message(self, *_):
        pass

    def log_request(self, code="-", size="-"):
        if not self.server.log or not hasattr(self, "headers"):
            return  # not a request: probably TLS
        scheme = self.headers.get("Authorization", "none").split(" ")[0].lower()
        with self.server.log_lock:
            self.server.log.write(
                f"{self.server.role} {self.command} {self.path} {int(code)} auth={scheme} "
                f"range={self.headers.get('Range', 'none')} "
                f"agent={self.headers.get('User-Agent', 'none')}\n"
            )
            self.server.log.flush()

    def fault(self, name):
        return self.server.faults.get(name)

    def happens(self, name, times_at):
        """The values of a counted fault when it is on and not used up."""
        values = self.fault(name)
        if values is None:
            return None
        times = values[times_at] if len(values) > times_at else None
        return values if self.server.faults.take(name, times) else None

    def answer(self, status, fields=(), body=b""):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self):
        self.close_connection = True

    # ---- the request ----

    def is_blob(self):
        return "/blobs/" in self.path

    def is_manifest(self):
        return "/manifests/" in self.path

    def do_POST(self):
        form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.give_token(urllib.parse.parse_qs(form))

    def do_GET(self):
        if self.server.role == "other":
            if self.fault("other-denies") is not None:
                return self.answer(401, [("WWW-Authenticate", self.challenge())])
            return self.pass_on()
        if self.path.startswith("/token"):
            return self.give_token(None)
        for refuse in (self.misbehave, self.refuse_status, self.refuse_stranger, self.send_away):
            if refuse():
                return None
        return self.pass_on()

    def misbehave(self):
        """Faults that are no answer at all."""
        if self.fault("mute") is not None:
            time.sleep(3600)
        elif self.fault("loop") is not None:
            self.answer(307, [("Location", self.path)])
        elif self.fault("endless-headers") is not None:
            self.send_endless(b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"a" * 1000 + b"\r\n")
        elif self.fault("endless-body") is not None and self.is_manifest():
            self.send_endless(b"HTTP/1.1 200 OK\r\n\r\n{", b" " * PIECE)
        else:
            return False
        return True

    def send_endless(self, start, piece):
        self.log_request(200)
        self.hang_up()
        self.wfile.write(start)
        while True:
            self.wfile.write(piece)

    def refuse_status(self):
        names = ["status"] + (["blob-status"] if self.is_blob() else [])
        for name in names:
            values = self.happens(name, 1)
            if values:
                self.refuse_with(values)
                return True
        return False

    def refuse_with(self, values):
        fields = [("Retry-After", values[2])] if len(values) > 2 else []
        words = b'{"errors":[{"code":"FAULT","message":"said faulty.py"}]}'
        self.answer(int(values[0]), fields, words)

    # ---- authentication ----

    def refuse_stranger(self):
        kind, _, given = self.headers.get("Authorization", "").partition(" ")
        if self.fault("basic") is not None:
            if kind == "Basic" and base64.b64decode(given).decode() == self.fault("basic")[0]:
                return False
            self.answer(401, [("WWW-Authenticate", 'Basic realm="faulty"')])
            return True
        if self.fault("token") is not None:
            if kind == "Bearer" and self.server.tokens.spend(given):
                return False
            self.answer(401, [("WWW-Authenticate", self.challenge())])
            return True
        return False

    def challenge(self):
        own = f"{self.server.scheme}://127.0.0.1:{self.server.main_port}/token"
        realm = (self.fault("realm") or [own])[0]
        return f'Bearer realm="{realm}",service="faulty",scope="registry:catalog:*"'

    def is_known(self, form):
        user, _, password = self.fault("token")[0].partition(":")
        if form is not None:
            return form.get("refresh_token") == [password]
        kind, _, given = self.headers.get("Authorization", "").partition(" ")
        return user == "" or (
            kind == "Basic" and base64.b64decode(given).decode() == f"{user}:{password}"
        )

    def give_token(self, form):
        values = self.happens("token-status", 1)
        if values:
            return self.refuse_with(values)
        if self.fault("token") is None:
            return self.answer(404)
        if not self.is_known(form):
            return self.answer(401)
        if self.fault("token-deep") is not None:
            return self.answer(200, [], b"[" * 60000)
        rest = self.fault("token")[1:]
        size = int((self.fault("token-size") or [0])[0])
        token = self.server.tokens.issue(int(rest[0]) if rest else -1, size)
        return self.answer(200, [], f'{{"token":"{token}"}}'.encode())

    def send_away(self):
        away = self.fault("away")
        if away is not None and self.is_blob():
            self.answer(307, [("Location", away[0])] if away and away[0] else [])
            return True
        host = self.fault("redirect")
        if host is None or not self.is_blob():
            return False
        port = self.server.other_port
        self.answer(307, [("Location", f"http://{(host or ['127.0.0.1'])[0]}:{port}{self.path}")])
        return True

    # ---- the answer ----

    def ask_upstream(self):
        fields = {name: value for name, value in self.headers.items() if name in ("Accept", "Range")}
        if self.server.role == "main" and self.is_blob():
            if self.fault("ignore-range") is not None:
                fields.pop("Range", None)
            if self.fault("wrong-range") is not None and "Range" in fields:
                fields["Range"] = "bytes=1-"
        connection = http.client.HTTPConnection(self.server.upstream, timeout=60)
        connection.request("GET", self.path, headers=fields)
        return connection.getresponse()

    def pass_on(self):
        got = self.ask_upstream()
        length = int(got.headers.get("Content-Length", 0))
        body = Body(self, got)
        self.send_response(got.status)
        for name, value in got.headers.items():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(body.announce(length)))
        self.end_headers()
        body.send()
        got.close()


class Body:
    """A body on its way to the client, with the faults that concern it."""

    def __init__(self, handler, got):
        self.handler, self.got, self.sent = handler, got, 0
        is_main = handler.server.role == "main" and got.status in (200, 206)
        self.is_blob = is_main and handler.is_blob()
        self.is_manifest = is_main and handler.is_manifest()
        self.is_flipped = self.choose_flip()
        self.cut = self.number("cut", 1)
        self.short, self.extra = self.number("short"), self.number("extra")
        self.rate, self.lie = self.number("slow"), self.number("lie")

    def number(self, name, times_at=9):
        values = self.handler.happens(name, times_at) if self.is_blob else None
        return int(values[0]) if values else None

    def choose_flip(self):
        wrong = self.handler.fault("wrong")
        if self.is_blob and wrong and self.handler.path.endswith(wrong[0]):
            return True
        if self.is_manifest and self.handler.fault("swap") is not None:
            return True
        return self.is_blob and self.handler.happens("flip", 0) is not None

    def announce(self, length):
        if self.short is not None:
            length = min(length, self.short)
        return length + (self.extra or 0) + (self.lie or 0)

    def send(self):
        if self.is_blob and self.handler.fault("stall") is not None:
            self.handler.wfile.flush()
            time.sleep(3600)
        while piece := self.got.read(min(PIECE, self.rate or PIECE)):
            if not self.send_piece(bytearray(piece)):
                return
        self.handler.wfile.write(b"x" * (self.extra or 0))
        if self.lie is not None:
            self.handler.hang_up()

    def send_piece(self, piece):
        """False when this was the last one."""
        if self.is_flipped and self.sent == 0:
            piece[len(piece) // 2] ^= 1
        limit = min(n for n in (self.cut, self.short, 1 << 62) if n is not None)
        last = self.sent + len(piece) >= limit
        self.handler.wfile.write(piece[: limit - self.sent])
        self.handler.wfile.flush()
        self.sent += len(piece)
        if last and self.cut is not None and limit == self.cut:
            self.handler.hang_up()
        if self.rate:
            time.sleep(1)
        return not last


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError, ssl.SSLError)):
            super().handle_error(request, client_address)


def parse_arguments():
    parser = argparse.ArgumentParser(description="see the top of this file")
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--other-port", type=int, default=0)
    parser.add_argument("--cert")
    parser.add_argument("--key")
    parser.add_argument("--log")
    parser.add_argument("--control")
    parser.add_argument("fault", nargs="*")
    return parser.parse_args()


def speak_tls(server, arguments):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(arguments.cert, arguments.key)
    # the connection's own thread does the handshake
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    server.scheme = "https"


def main():
    arguments = parse_arguments()
    servers = [Server(("127.0.0.1", p), Handler) for p in (arguments.port, arguments.other_port)]
    log = open(arguments.log, "a", encoding="utf-8") if arguments.log else None
    faults, lock = Faults(arguments.fault, arguments.control), threading.Lock()
    for server, role in zip(servers, ("main", "other")):
        server.role, server.upstream, server.faults = role, arguments.upstream, faults
        server.log, server.log_lock, server.tokens = log, lock, Tokens()
        server.main_port, server.other_port = (each.server_port for each in servers)
        server.scheme = "http"
    if arguments.cert:
        speak_tls(servers[0], arguments)
    threading.Thread(target=servers[1].serve_forever, daemon=True).start()
    print(servers[0].server_port, servers[1].server_port, flush=True)
    servers[0].serve_forever()


main()
