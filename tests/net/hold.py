"""hold.py: holds several connections, each with a label. Takes lines from standard input and
prints one for each: "ok ..." with what came back, or what went wrong, as talk.py does.

  open L HOST PORT     connects
  say L TEXT           sends TEXT and prints the first line that comes back
  send L TEXT          sends TEXT only
  get L HOST [PATH]    a request on a connection that is kept; prints the last line of its body
  tls L NAME           a handshake with NAME as server name
  look L               "open", or how it ended, without waiting
  wait L               how it ended; "open" after some seconds
  resolve NAME         one address
  later LINE           runs LINE beside the others; "result" prints its answer, then or when it is there
TEXT may have \\r \\n.
"""
import errno
import socket
import ssl
import sys
import threading

WAIT = 8
held = {}
later = {}


def text(s):
    return s.encode("latin-1").decode("unicode_escape").encode("latin-1")


def connect(label, host, port):
    s = socket.create_connection((host, int(port)), WAIT)
    held[label] = s
    return "ok"


def say(label, *words):
    held[label].sendall(text(" ".join(words)))
    data = b""
    while b"\n" not in data:
        more = held[label].recv(65536)
        if not more:
            break
        data += more
    return "ok " + data.split(b"\n")[0].decode("latin-1").strip() if data else "closed"


def send(label, *words):
    held[label].sendall(text(" ".join(words)))
    return "ok"


def get(label, host, path="/name"):
    s = held[label]
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    f = s.makefile("rb")
    status = f.readline().decode().strip()
    if not status:
        return "closed"
    length = 0
    while (field := f.readline().decode().strip()):
        if field.lower().startswith("content-length:"):
            length = int(field.split(":")[1])
    return f"ok {status.split()[1]} " + f.read(length).decode().strip().split("\n")[-1]


def tls(label, name):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    held[label] = context.wrap_socket(held[label], server_hostname=name)
    return "ok " + held[label].version()


def look(label, wait=0.0):
    s = held[label]
    s.settimeout(wait)
    try:
        data = s.recv(65536)
        return f"data {len(data)}" if data else "closed"
    except (BlockingIOError, socket.timeout, ssl.SSLWantReadError):
        return "open"
    finally:
        s.settimeout(WAIT)


def wait(label):
    return look(label, 4.0)


def resolve(name):
    return "ok " + sorted({r[4][0] for r in socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)})[0]


ACTIONS = {"open": connect, "say": say, "send": send, "get": get, "tls": tls, "look": look, "wait": wait,
           "resolve": resolve}


def attempt(words):
    try:
        return ACTIONS[words[0]](*words[1:])
    except socket.gaierror as e:
        return {-2: "nxdomain", -3: "again", -5: "nxdomain"}.get(e.errno, f"gai {e.errno}")
    except ssl.SSLError as e:
        return "closed" if "EOF" in str(e) else f"tls {e.reason}"
    except (socket.timeout, TimeoutError):
        return "timeout"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))


def act(words):
    if words[0] == "later":
        later["thread"] = threading.Thread(target=lambda: later.update(result=attempt(words[1:])), daemon=True)
        later["thread"].start()
        return "ok"
    if words[0] == "result":
        later["thread"].join()
        return later["result"]
    return attempt(words)


for line in sys.stdin:
    print(act(line.split()), flush=True)
