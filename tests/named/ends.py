"""ends.py PROGRAM mcp|serve TERM|KILL|close calls|pulls: ends a server in the middle of all kinds of calls, or of pulls.

Prints what of it still runs 8 seconds later: our own processes by their titles, what runs inside by its words. A named sandbox
stays, with its long command: the caller made it to stay.
"""
import atexit
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

program, face, end, kind = sys.argv[1:5]
mark = str(os.getpid())
place = os.getcwd()


def words(number):
    return ["sleep", f"{number}.{mark}"]


def stubborn(number):
    sleep = " ".join(words(number))
    return ["sh", "-c", f"trap '' TERM HUP INT; {sleep}; {sleep}; {sleep}"]


# ---- a registry that never answers ----

silent = socket.create_server(("127.0.0.1", 0))
asked = []


def accept():
    while True:
        asked.append(silent.accept())


threading.Thread(target=accept, daemon=True).start()
image = "host" if kind == "calls" else f"127.0.0.1:{silent.getsockname()[1]}/x:1"


# ---- the two servers ----

class Mcp:
    def __init__(self):
        self.process = subprocess.Popen([program, "mcp", "server", "--image", image], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.count = 0
        self.write("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        self.process.stdout.readline()
        self.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def write(self, method, params):
        self.count += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()

    def start(self, tool, _path, arguments):
        self.write("tools/call", {"name": tool, "arguments": arguments})

    def ask(self, tool, path, arguments):
        self.start(tool, path, arguments)
        answer = json.loads(self.process.stdout.readline())
        if answer["result"].get("isError"):
            sys.exit(f"{tool}: {answer}")

    def close(self):
        self.process.stdin.close()


class Serve:
    def __init__(self):
        self.path = os.path.join(place, "socket")
        self.process = subprocess.Popen([program, "serve", "--image", image, "--listen", "unix:" + self.path], stdin=subprocess.DEVNULL)
        self.kept = []
        until(lambda: os.path.exists(self.path), "a socket")

    def start(self, _tool, path, arguments):
        c = http.client.HTTPConnection("localhost")
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(self.path)
        name = arguments.pop("name", None) if "{}" in path else None
        c.request("POST", path.format(name), json.dumps(arguments), {"Content-Type": "application/json"})
        self.kept.append(c)
        return c

    def ask(self, tool, path, arguments):
        answer = self.start(tool, path, arguments).getresponse()
        if answer.status >= 300:
            sys.exit(f"{path}: {answer.status} {answer.read()}")


def until(what, words):
    for _ in range(1200):
        if what():
            return
        time.sleep(0.05)
    sys.exit(f"never seen: {words}")


# ---- running processes ----

def running():
    """Titles of our processes, and words of those inside. Not of a pid 1, which an ordinary user cannot tell from another's."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                text = f.read().replace("\0", " ").strip()
            own = os.readlink(f"/proc/{pid}/exe").startswith(os.path.dirname(program) + "/")
        except OSError:
            continue
        if own and not text.startswith("agentkernel: init") or (mark in text and text.startswith("sleep ")):
            found.append(text.replace("." + mark, ""))
    return sorted(found)


before = running()
server = Mcp() if face == "mcp" else Serve()
atexit.register(server.process.kill)  # it keeps our output open: bats would wait for it
RUN, EXEC, CREATE = ("sandbox_run", "/run"), ("sandbox_exec", "/sandboxes/{}/exec"), ("sandbox_create", "/sandboxes")


def start_calls():
    server.ask(*CREATE, {"name": "stays"})
    server.ask("sandbox_start", "/sandboxes/{}/start", {"name": "stays"})
    server.ask("sandbox_exec_start", "/sandboxes/{}/exec/detach", {"name": "stays", "command": words(100)})
    server.start(*RUN, {"command": words(101)})
    server.start(*RUN, {"command": stubborn(102)})
    server.start(*RUN, {"command": words(103), "files": {"/tmp/f": "x"}})
    server.start(*RUN, {"command": ["sh", "-c", f"setsid {' '.join(words(104))} & {' '.join(words(104))}"]})
    server.start(*RUN, {"command": stubborn(105), "files": {"/tmp/f": "x"}})
    server.start(*EXEC, {"name": "stays", "command": words(106)})
    server.start(*EXEC, {"name": "stays", "command": stubborn(107)})
    wanted = {f"sleep {n}" for n in range(100, 108)}
    until(lambda: wanted <= set(running()), f"all of {wanted}; there are {running()}")


def start_pulls():
    server.start(*RUN, {"command": ["true"]})
    server.start(*RUN, {"command": ["true"], "files": {"/tmp/f": "x"}})
    server.start(*CREATE, {"name": "never"})
    until(lambda: len(asked) >= 3, "three pulls")


start_calls() if kind == "calls" else start_pulls()
if end == "close":
    server.close()
else:
    server.process.send_signal(getattr(signal, "SIG" + end))
started = time.monotonic()
server.process.wait(timeout=60)
took = time.monotonic() - started
while time.monotonic() < started + took + 8:
    left = [text for text in running() if text not in before]
    if not [text for text in left if "stays" not in text and text != "sleep 100"]:
        break
    time.sleep(0.2)
print("\n".join(left))
print(f"the server ended within {int(took / 10 + 1) * 10} s")
