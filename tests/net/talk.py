"""talk.py ACTION [ARG...]: a client that does one thing and prints one line: "ok ..." with what
came back, or the name of what went wrong: an errno, "closed", "timeout", "nxdomain".

  tcp HOST PORT [TEXT]         connects, sends TEXT, prints the first line that comes back
  send HOST PORT TEXT...       sends each TEXT on a connection of its own, all at once, and prints
                               a line for each with all that comes back, lines joined by |;
                               \\p in TEXT is a pause
  each PORT HOST...            a line "HOST RESULT" of tcp for each of them
  hold COUNT HOST PORT TEXT    opens COUNT connections, says TEXT on each and keeps them, prints how
                               many there are, and the banner of port 2000 beside them;
                               keeps them for 2 s more
  half HOST PORT BYTES         sends, closes its side, prints the answer
  get HOST PORT                counts what comes until the end
  udp HOST PORT                a datagram, and its answer
  join GROUP                   joins a multicast group at whatever interface leads to it
  tls HOST PORT [NAME]         a handshake with NAME as server name (- is none)
  hello HOST PORT NAME SIZE    the same, the first message in segments of SIZE bytes
  resolve NAME                 getaddrinfo
  flood COUNT SUFFIX           getaddrinfo for COUNT names below SUFFIX, all different
  dns SERVER udp|tcp TYPE NAME a query of one's own: the code and the number of answers
  records SERVER udp|tcp TYPE NAME
                               the same: the code, "truncated", and TXT, MX and SRV records, | between
  garbage SERVER               queries that are none, over UDP and TCP
  icmp HOST | socket FAMILY TYPE PROTOCOL HOST | bind HOST PORT
TEXT may have \\r \\n \\xNN.
"""
import concurrent.futures
import errno
import random
import socket
import ssl
import struct
import sys
import time

WAIT = 8


def text(s):
    return s.encode("latin-1").decode("unicode_escape").encode("latin-1")


def connect(host, port, kind=socket.SOCK_STREAM):
    last = None
    for family, _, _, _, address in socket.getaddrinfo(host, int(port), 0, kind):
        s = socket.socket(family, kind)
        s.settimeout(WAIT)
        try:
            s.connect(address)
            return s
        except OSError as e:
            last = e
    raise last


def read_all(s):
    out = b""
    while data := s.recv(65536):
        out += data
    return out


def line(data):
    return data.split(b"\n")[0].decode("latin-1").strip()


def tcp(host, port, say=""):
    s = connect(host, port)
    if say:
        s.sendall(text(say))
    data = b""
    while b"\n" not in data:
        more = s.recv(65536)
        if not more:
            break
        data += more
    return "ok " + line(data) if data else "closed"


def each(port, *hosts):
    return "\n".join(f"{host} {attempt(tcp, host, port)}" for host in hosts)


def send(host, port, *texts):
    with concurrent.futures.ThreadPoolExecutor(len(texts)) as pool:
        return "\n".join(pool.map(lambda say: attempt(send_one, host, port, say), texts))


def send_one(host, port, say):
    s = connect(host, port)
    data = b""
    try:
        for i, part in enumerate(say.split("\\p")):
            time.sleep(0.2 if i else 0)
            s.sendall(text(part))
        s.settimeout(1.5)
        while more := s.recv(65536):
            data += more
    except (socket.timeout, ConnectionError):
        pass
    return "ok " + data.decode("latin-1").replace("\r", "").replace("\n", "|") if data else "closed"


def hold(count, host, port, say):
    held = []
    address = resolve(host).split()[1]  # once: lookups have their own limit
    try:
        while len(held) < int(count):
            s = connect(address, port)
            s.sendall(text(say))
            held.append(s)
    except OSError:
        pass
    for s in held[:20]:  # to free descriptors
        s.close()
    print(f"ok {len(held)} {attempt(tcp, host, 2000)}", flush=True)
    time.sleep(2)
    return "done"


def half(host, port, count):
    s = connect(host, port)
    s.sendall(b"x" * int(count))
    s.shutdown(socket.SHUT_WR)
    return "ok " + line(read_all(s))


def get(host, port):
    s, total = connect(host, port), 0
    while data := s.recv(1 << 20):
        total += len(data)
    return f"ok {total}"


def udp(host, port):
    s = connect(host, port, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.send(b"hello")
    return "ok " + line(s.recv(2048))


def join(group):
    if ":" in group:
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, group) + bytes(4))
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + bytes(4))
    return "ok"


def tls(host, port, name=None):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    name = None if name == "-" else name or host
    with context.wrap_socket(connect(host, port), server_hostname=name) as s:
        s.sendall(b"GET /name HTTP/1.0\r\nHost: x\r\n\r\n")
        return "ok " + line(read_all(s).split(b"\r\n\r\n")[-1])


def resume(host, port, version, *names):
    """A session of the first name, and then the same session under each of the others."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)
    session, said = None, []

    def one(name):
        nonlocal session
        name = None if name == "-" else name
        with context.wrap_socket(connect(host, port), server_hostname=name, session=session) as s:
            s.sendall(b"GET /name HTTP/1.0\r\nHost: x\r\n\r\n")
            answer = "ok " + line(read_all(s).split(b"\r\n\r\n")[-1])
            answer += " resumed" if s.session_reused else ""
            session = session or s.session
            return answer
    return "\n".join(f"{name} {attempt(one, name)}" for name in names)


def hello(host, port, name, size):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    t = context.wrap_bio(arrived, leaving, server_hostname=name)
    s = connect(host, port)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        try:
            t.do_handshake()
            break
        except ssl.SSLWantReadError:
            pass
        data = leaving.read()
        for i in range(0, len(data), int(size)):
            s.send(data[i:i + int(size)])
            time.sleep(0.001)
        more = s.recv(65536)
        if not more:
            return "closed"
        arrived.write(more)
    return "ok " + t.version()


def resolve(name):
    found = {r[4][0] for r in socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)}
    return "ok " + " ".join(sorted(found))


def flood(count, suffix):
    worked = 0
    for i in range(int(count)):
        try:
            socket.getaddrinfo(f"x{i}.{suffix}", None, socket.AF_INET, socket.SOCK_STREAM)
            worked += 1
        except OSError:
            pass
    return f"ok {worked}"


def drown(seconds, what, *where):
    """For so many seconds as fast as it goes: queries by packet or stream, connections to where."""
    end, count, sock = time.monotonic() + float(seconds), 0, None
    while time.monotonic() < end:
        try:
            if what == "connect":
                connect(where[0], int(where[1])).close()
            else:
                name = b"\x10%016x\x06denied\x04test\0" % random.getrandbits(64)
                query = struct.pack("!HHHHHH", 1, 0x100, 1, 0, 0, 0) + name + struct.pack("!HH", 1, 1)
                kind = socket.SOCK_DGRAM if what == "udp" else socket.SOCK_STREAM
                sock = sock or connect("93.184.216.53", 53, kind)
                sock.sendall(query if what == "udp" else struct.pack("!H", len(query)) + query)
                sock.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
        except OSError:
            sock = None
        count += 1
    return f"ok {count}"


KINDS = {"A": 1, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "HTTPS": 65, "ANY": 255}
RCODES = {0: "noerror", 2: "servfail", 3: "nxdomain", 5: "refused"}


def ask(server, transport, kind, name):
    question = b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0"
    query = struct.pack("!HHHHHH", random.randrange(65536), 0x100, 1, 0, 0, 0) + question + \
        struct.pack("!HH", KINDS[kind], 1)
    s = connect(server, 53, socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM)
    s.settimeout(3)
    if transport == "tcp":
        s.sendall(struct.pack("!H", len(query)) + query)
        f = s.makefile("rb")
        return f.read(struct.unpack("!H", f.read(2))[0])
    s.send(query)
    return s.recv(65536)


def dns(server, transport, kind, name):
    flags, _, answers = struct.unpack("!HHH", ask(server, transport, kind, name)[2:8])
    return f"ok {RCODES.get(flags & 15, flags & 15)} {answers}"


def read_name(data, at):
    labels = []
    while data[at]:
        if data[at] >= 0xC0:
            at = struct.unpack("!H", data[at:at + 2])[0] & 0x3FFF
            continue
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels) + "."


def skip_name(data, at):
    while data[at] and data[at] < 0xC0:
        at += 1 + data[at]
    return at + (2 if data[at] else 1)


def show(kind, data, at, end):
    if kind == "TXT":
        strings = []
        while at < end:
            strings.append(repr(data[at + 1:at + 1 + data[at]])[1:])
            at += 1 + data[at]
        return " ".join(strings)
    numbers = {"MX": 1, "SRV": 3}.get(kind, 0)
    return " ".join(map(str, struct.unpack(f"!{numbers}H", data[at:at + 2 * numbers]))) + " " + read_name(data, at + 2 * numbers)


def records(server, transport, kind, name):
    data = ask(server, transport, kind, name)
    flags, _, answers = struct.unpack("!HHH", data[2:8])
    at, out = skip_name(data, 12) + 4, []
    for _ in range(answers):
        at = skip_name(data, at)
        size = struct.unpack("!H", data[at + 8:at + 10])[0]
        if struct.unpack("!H", data[at:at + 2])[0] == KINDS[kind]:
            out.append(show(kind, data, at + 10, at + 10 + size))
        at += 10 + size
    word = str(RCODES.get(flags & 15, flags & 15)) + (" truncated" if flags & 0x200 else "")
    return f"ok {word} " + "|".join(out)


def garbage(server):
    header = struct.pack("!HHHHHH", 1, 0x100, 1, 0, 0, 0)
    query = header + b"\3www\7allowed\4test\0\0\1\0\1"
    packets = [
        b"", b"\0", header[:7], header, query[:-3], query[:20],
        header + b"\xc0\x0c\0\1\0\1",  # a name that points to itself
        header + b"\xc0\x0e\xc0\x0c\0\1\0\1",  # two that point to each other
        header + b"\xff\xff\0\1\0\1", header + b"\x7fabc\0\0\1\0\1",
        header + (b"\x3f" + b"a" * 63) * 5 + b"\0\0\1\0\1",  # longer than a name may be
        header + b"\1\0\0\0\1\0\1",  # NUL in a label
        struct.pack("!HHHHHH", 1, 0x100, 65535, 65535, 65535, 65535) + query[12:],
        struct.pack("!HHHHHH", 1, 0x100, 200, 0, 0, 0) + query[12:] * 200,
        struct.pack("!HHHHHH", 1, 0x8180, 1, 0, 0, 0) + query[12:],  # a response
        struct.pack("!HHHHHH", 1, 0x2900, 1, 0, 0, 0) + query[12:],  # an update
        struct.pack("!HHHHHH", 1, 0x100, 1, 0, 0, 1) + query[12:] + b"\0\0\x29\xff\xff\0\0\0\0\xff\xff",
        query + bytes(60000),
    ] + [random.Random(i).randbytes(i * 7) for i in range(1, 100)]
    u = connect(server, 53, socket.SOCK_DGRAM)
    for p in packets:
        try:
            u.send(p)
        except OSError:
            pass
        try:
            t = connect(server, 53)
            t.sendall(struct.pack("!H", len(p)) + p)
            t.sendall(struct.pack("!H", 65535) + p[:10])
            t.close()
        except OSError:
            pass
    return "ok"


def icmp(host):
    v6 = ":" in host
    s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM, 58 if v6 else 1)
    s.settimeout(1)
    s.sendto(struct.pack("!BBHHH", 128 if v6 else 8, 0, 0, 1, 1) + b"hello", (host, 0))
    return "ok " + str(len(s.recv(2048)))


def any_socket(family, kind, protocol, host):
    s = socket.socket(int(family), int(kind), int(protocol))
    s.settimeout(1)
    if int(kind) == socket.SOCK_RAW:
        s.sendto(struct.pack("!BBHHH", 8, 0, 0xF7FF, 0, 0), (host, 0))
    else:
        s.connect((host, 443))
    return "ok"


def bind(host, port):
    """a server and its client, both in here"""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family)
    s.bind((host, int(port)))
    s.listen()
    c = socket.create_connection(s.getsockname()[:2], 2)
    a, _ = s.accept()
    a.sendall(b"hello\n")
    return "ok " + line(c.recv(10))


ACTIONS = {"tcp": tcp, "each": each, "hold": hold, "garbage": garbage, "send": send, "half": half, "get": get, "udp": udp, "join": join, "tls": tls, "resume": resume, "hello": hello,
           "resolve": resolve, "flood": flood, "drown": drown, "dns": dns, "records": records, "icmp": icmp, "socket": any_socket, "bind": bind}


def attempt(action, *args):
    try:
        return action(*args)
    except socket.gaierror as e:
        return {-2: "nxdomain", -3: "again", -4: "fail", -5: "nxdomain"}.get(e.errno, f"gai {e.errno}")
    except ssl.SSLError as e:
        return "closed" if "EOF" in str(e) else f"tls {e.reason}"
    except (socket.timeout, TimeoutError) as e:
        return "timeout" if e.errno is None else errno.errorcode[e.errno]
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
    except struct.error:
        return "closed"


print(attempt(ACTIONS[sys.argv[1]], *sys.argv[2:]))
