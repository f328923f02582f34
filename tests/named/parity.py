#!/usr/bin/env python3
"""Each operation through every face: parity.py AGENTKERNEL LIBCALL [field]. Prints what differs, then "same: N operations".

The same arguments have to have the same effect, and what is refused has to be refused in the same words, from the command line,
over MCP, over HTTP and through the C library. A face is a class with one method per operation; each answers with what the
operation did, in the same form, or raises Refused with the words up to the first advice, which is each face's own.
"""
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse

from faces import HttpServer, McpSession, call_library

program, libcall = sys.argv[1:3]
has_field = "field" in sys.argv[3:]


class Refused(Exception):
    def __init__(self, words):
        words = re.sub(r"^(agentkernel|refused): ", "", words.strip())
        words = re.sub(r"^--", "", words)  # an option there is a parameter here
        super().__init__(re.split(r" \(|; |, use ", words)[0])


class Cli:
    """The command line; what other faces call by a parameter is an option here."""
    options = {"memory": "--memory", "image": "--image", "profile": "--profile", "cwd": "-w", "user": "--user", "pids": "--pids",
               "cpus": "--cpus", "ttl_ms": "--ttl", "network": "--network", "timeout_ms": "--timeout", "env": "-e"}

    def type(self, *words, status=0, text=None):
        r = subprocess.run([program, *words], capture_output=True, text=True, input=text or "", timeout=60)
        if r.returncode in (125, 126, 127) and r.stderr.startswith("agentkernel: "):
            raise Refused(r.stderr.splitlines()[-1])
        return r

    def words(self, params):
        words = []
        for key, value in params.items():
            if key == "network":
                words.append("--network" if value else "--no-network")
            elif key == "env":
                for name in value:
                    words += ["-e", f"{name}={value[name]}"]
            elif key.endswith("_ms"):
                words += [self.options[key], f"{value}ms"]
            else:
                words += [self.options.get(key, "--" + key.replace("_", "-")), str(value)]
        return words

    def run(self, command, **params):
        r = self.type("run", *self.words(params), *command)
        return r.returncode, r.stdout

    def create(self, name, **params):
        self.type("create", name, *self.words(params))
        self.type("start", name)

    def exec(self, name, command, **params):
        r = self.type("exec", *self.words(params), name, *command)
        return r.returncode, r.stdout

    def info(self, name):
        i = json.loads(self.type("info", "--json", name).stdout)
        return i["state"], i["image"]

    def names(self):
        return sorted(s["name"] for s in json.loads(self.type("list", "--all", "--json").stdout))

    def move(self, word, name):
        self.type(word, *(["-f"] if word == "remove" else []), name)

    def checkpoint(self, name, comment):
        return self.type("checkpoint", "create", name, "--comment", comment).stdout.strip()

    def checkpoint_every(self, name, **params):
        made = json.loads(self.type("checkpoint", "create", name, "--json", *self.words(params)).stdout)
        return "id" in made, made["every_ms"], made["keep"] or None

    def interval(self, name):
        i = json.loads(self.type("info", "--json", name).stdout)
        return i.get("checkpoint_every_ms"), i.get("checkpoint_keep")

    def checkpoints(self, name):
        return [c["comment"] for c in json.loads(self.type("checkpoint", "list", "--json", name).stdout)]

    def restore(self, name, id):
        self.type("checkpoint", "restore", name, id)

    def checkpoint_remove(self, id):
        self.type("checkpoint", "remove", id)

    def fork(self, name, new):
        self.type("fork", name, new)

    def write(self, name, path, text):
        open("content", "w").write(text)
        self.type("cp", "content", f"{name}:{path}")

    def read(self, name, path):
        self.type("cp", f"{name}:{path}", "content")
        return open("content").read()

    def network_check(self, name, host):
        return json.loads(self.type("network", "check", "--json", name, host).stdout)["allowed"]

    def network_change(self, name, allow, block):
        if block:
            self.type("network", "block", name, *block)
        if allow:
            self.type("network", "allow", name, *allow)

    def start_command(self, name, command):
        return self.type("exec", "-d", name, *command).stdout.strip()

    def wait(self, name, id):
        for _ in range(100):
            for c in json.loads(self.type("ps", "--json", name).stdout):
                if c["id"] == id and not c["running"]:
                    return c["exit_code"] if c["exit_code"] is not None else 128 + c["signal"]
            time.sleep(0.05)
        return None

    def output(self, name, id):
        return self.type("logs", name, id).stdout

    def kill(self, name, id, signal):
        self.type("kill", name, id, "--signal", signal)

    def stats(self, name):
        return json.loads(self.type("stats", "--no-stream", "--json", name).stdout)["pids_limit"]


class Json:
    """What MCP, the library and HTTP have in common: operations by their names, objects as arguments."""
    def run(self, command, **params):
        r = self.call("sandbox_run", "POST", "/run", command=command, **params)
        return r["exit_code"], r["stdout"] if "stdout" in r else r["output"]

    def create(self, name, **params):
        self.call("sandbox_create", "POST", "/sandboxes", name=name, **params)

    def exec(self, name, command, **params):
        r = self.call("sandbox_exec", "POST", "/sandboxes/{name}/exec", name=name, command=command, **params)
        return r["exit_code"], r["stdout"] if "stdout" in r else r["output"]

    def info(self, name):
        s = [s for s in self.call("sandbox_list", "GET", "/sandboxes")["sandboxes"] if s["name"] == name]
        if not s:
            raise Refused(f"no sandbox named '{name}'")
        return s[0].get("state") or s[0]["status"], s[0]["image"]

    def names(self):
        return sorted(s["name"] for s in self.call("sandbox_list", "GET", "/sandboxes")["sandboxes"])

    def move(self, word, name):
        method, path = ("DELETE", "/sandboxes/{name}") if word == "remove" else ("POST", "/sandboxes/{name}/" + word)
        self.call("sandbox_" + word, method, path, name=name)

    def checkpoint(self, name, comment):
        r = self.call("sandbox_checkpoint", "POST", "/snapshots", name=name, comment=comment)
        return r.get("id") or r["name"]

    def checkpoint_every(self, name, **params):
        made = self.call("sandbox_checkpoint", "POST", "/snapshots", name=name, **params)
        return "id" in made or "image_tag" in made, made["every_ms"], made.get("keep")

    def interval(self, name):
        s = [s for s in self.call("sandbox_list", "GET", "/sandboxes")["sandboxes"] if s["name"] == name][0]
        return s.get("checkpoint_every_ms"), s.get("checkpoint_keep")

    def checkpoints(self, name):
        return [c.get("comment") or c["name"] for c in
                self.call("checkpoint_list", "GET", "/snapshots", name=name)["entries"]]

    def restore(self, name, id):
        self.call("sandbox_restore", "POST", "/snapshots/{id}/restore", name=name, id=id)

    def checkpoint_remove(self, id):
        self.call("checkpoint_remove", "DELETE", "/snapshots/{id}", id=id)

    def fork(self, name, new):
        self.call("sandbox_fork", "POST", "/sandboxes/{name}/fork", name=name, new_name=new)

    def write(self, name, path, text):
        self.call("sandbox_file_write", "PUT", "/sandboxes/{name}/files/{path}", name=name, path=path, content=text)

    def read(self, name, path):
        return self.call("sandbox_file_read", "GET", "/sandboxes/{name}/files/{path}", name=name, path=path)["content"]

    def network_check(self, name, host):
        return self.call("sandbox_network_check", "GET", "/sandboxes/{name}/network/check", name=name, host=host)["allowed"]

    def start_command(self, name, command):
        return self.call("sandbox_exec_start", "POST", "/sandboxes/{name}/exec/detach", name=name, command=command)["id"]

    def wait(self, name, id):
        return self.call("sandbox_exec_wait", "GET", "/sandboxes/{name}/exec/detached/{id}/wait", name=name, id=id,
                         timeout_ms=20000)["exit_code"]

    def output(self, name, id):
        r = self.call("sandbox_exec_output", "GET", "/sandboxes/{name}/exec/detached/{id}/logs", name=name, id=id)
        return r.get("output", r.get("stdout"))

    def kill(self, name, id, signal):
        self.call("sandbox_exec_kill", "DELETE", "/sandboxes/{name}/exec/detached/{id}", name=name, id=id, signal=signal)


class Mcp(Json, McpSession):
    def call(self, tool, _method, _route, /, **arguments):
        r = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        if r.get("isError"):
            raise Refused(r["content"][0]["text"])
        return r.get("structuredContent") or json.loads(r["content"][0]["text"])


class Library(Json):
    def call(self, operation, _method, _route, /, **arguments):
        done, result = call_library(program, libcall, operation, arguments)
        if not done:
            raise Refused(result)
        return result

    def network_change(self, name, allow, block):
        self.call("sandbox_network_change", None, None, name=name, **{k: v for k, v in (("allow", allow), ("block", block)) if v})

    def stats(self, name):
        return self.call("sandbox_stats", None, None, name=name)["pids_limit"]


class Http(Json, HttpServer):
    def call(self, _operation, method, path, /, **arguments):
        whole = dict(arguments)
        for key in ("name", "id", "path"):
            if "{" + key + "}" in path:
                path = path.replace("{" + key + "}", str(arguments.pop(key)).lstrip("/"))
        if path.endswith("/restore"):
            arguments = {}
        if path == "/snapshots" and method == "POST":
            arguments["sandbox"] = arguments.pop("name")
            if "comment" in whole:
                arguments["name"] = arguments.pop("comment")
        body = None if method in ("GET", "DELETE") else json.dumps(arguments)
        if body is None and arguments:
            path += "?" + urllib.parse.urlencode(arguments)
        status, text = self.request(method, path, body)
        r = json.loads(text) if text else {}
        ended = re.match(r"Command exited with code (\d+)", r.get("error") or "") if isinstance(r, dict) else None
        if ended:  # this API has no other place for it
            return {"exit_code": int(ended[1]), "output": (r.get("data") or {}).get("output", "")}
        if status >= 300:
            raise Refused(r["error"]["message"] if isinstance(r["error"], dict) else r["error"])
        r = r.get("data", r) if isinstance(r, dict) else r
        if isinstance(r, list):
            r = {"entries": r, "sandboxes": r}
        return r

    def network_change(self, name, allow, block):
        self.call(None, "POST", "/sandboxes/{name}/network", name=name, **{k: v for k, v in (("allow", allow), ("block", block)) if v})

    def stats(self, name):
        return self.call(None, "GET", "/sandboxes/{name}/stats", name=name)["pids_limit"]


# ---- what is tried, in this order: a label, and what each face is asked to do ----

SHOW = ["sh", "-c", "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max; id -u; pwd; echo $A"]


def cases(face, box):
    made = {}

    def keep(key, value):
        made[key] = value

    yield "run", lambda: face.run(["echo", "hello"])
    yield "run: exit status", lambda: face.run(["sh", "-c", "exit 7"])
    yield "run: a signal", lambda: face.run(["sh", "-c", "kill -9 $$"])
    yield "run: parameters", lambda: face.run(SHOW, memory="128MiB", pids=40, user="1000:1000", cwd="/tmp", env={"A": "b"})
    yield "run: no network", lambda: face.run(["sh", "-c", "ls /sys/class/net"], network=False)
    yield "run: deadline", lambda: face.run(["sleep", "60"], timeout_ms=300)
    yield "run: memory too small", lambda: face.run(["true"], memory="1KiB")
    yield "run: no such profile", lambda: face.run(["true"], profile="lenient")
    yield "run: an image that is not an image's name", lambda: face.run(["true"], image="-")
    yield "run: user without an account", lambda: face.run(["true"], user="nobody-has-this-name")
    if has_field:
        yield "run: the field of the test build", lambda: face.run(["sh", "-c", "echo $AGENTKERNEL_TEST_LIMIT"], test_limit=100)
        yield "run: without it", lambda: face.run(["sh", "-c", "echo $AGENTKERNEL_TEST_LIMIT"])
    yield "create", lambda: face.create(box, memory="256MiB", pids=60)
    if has_field:
        yield "create: the field of the test build", lambda: face.create(box + "-field", test_limit=7)
        yield "create: it is in force", lambda: face.exec(box + "-field", ["sh", "-c", "echo $AGENTKERNEL_TEST_LIMIT"])
        yield "create: gone", lambda: face.move("remove", box + "-field")
    yield "create: the name is taken", lambda: face.create(box)
    yield "create: not a name", lambda: face.create("Not A Name")
    yield "info", lambda: face.info(box)
    yield "info: missing", lambda: face.info("missing")
    yield "stats", lambda: face.stats(box) if hasattr(face, "stats") else 60
    yield "exec", lambda: face.exec(box, SHOW, cwd="/tmp", user="1000:1000", env={"A": "b"})
    yield "exec: a relative directory", lambda: face.exec(box, ["pwd"], cwd="..")
    yield "exec: no such directory", lambda: face.exec(box, ["pwd"], cwd="/no/such")
    yield "exec: missing", lambda: face.exec("missing", ["true"])
    yield "exec: deadline", lambda: face.exec(box, ["sleep", "60"], timeout_ms=300)
    yield "file: write", lambda: face.write(box, "/tmp/file", "text\n")
    yield "file: read", lambda: face.read(box, "/tmp/file")
    yield "command: start", lambda: keep("id", face.start_command(box, ["sh", "-c", "echo out; exit 5"]))
    yield "command: wait", lambda: face.wait(box, made["id"])
    yield "command: output", lambda: face.output(box, made["id"])
    yield "command: another", lambda: keep("id", face.start_command(box, ["sleep", "60"]))
    yield "command: kill", lambda: face.kill(box, made["id"], "KILL")
    yield "command: killed", lambda: face.wait(box, made["id"])
    yield "command: kill one that is not there", lambda: face.kill(box, "00000000", "KILL")
    yield "pause", lambda: face.move("pause", box)
    yield "paused", lambda: face.info(box)
    yield "resume", lambda: face.move("resume", box)
    yield "checkpoint", lambda: keep("checkpoint", face.checkpoint(box, "first-" + box))
    yield "checkpoint: list", lambda: face.checkpoints(box)
    yield "checkpoint: every", lambda: face.checkpoint_every(box, every="5m", keep=3)
    yield "checkpoint: the interval is shown", lambda: face.interval(box)
    yield "checkpoint: too often", lambda: face.checkpoint_every(box, every="1s")
    yield "checkpoint: keep alone", lambda: face.checkpoint_every(box, keep=3)
    yield "checkpoint: off", lambda: face.checkpoint_every(box, every="off")
    yield "checkpoint: no interval is shown", lambda: face.interval(box)
    yield "a change", lambda: face.exec(box, ["rm", "/tmp/file"])
    yield "restore", lambda: face.restore(box, made["checkpoint"])
    yield "restored", lambda: face.exec(box, ["cat", "/tmp/file"])
    yield "fork", lambda: face.fork(box, box + "-twin")
    yield "forked", lambda: face.exec(box + "-twin", ["cat", "/tmp/file"])
    yield "network: check", lambda: face.network_check(box, "example.org")
    yield "network: block", lambda: face.network_change(box, None, ["example.org"]) if hasattr(face, "network_change") else None
    yield "network: check again", lambda: face.network_check(box, "example.org") and hasattr(face, "network_change")
    yield "stop", lambda: face.move("stop", box)
    yield "stopped", lambda: face.info(box)
    yield "start", lambda: face.move("start", box)
    yield "names", lambda: [n for n in face.names() if n.startswith(box)]
    yield "remove", lambda: [face.move("remove", n) for n in (box, box + "-twin")]
    yield "remove: one that does not exist is no error", lambda: face.move("remove", box)
    yield "checkpoint: remove", lambda: face.checkpoint_remove(made["checkpoint"])
    yield "removed", lambda: [n for n in face.names() if n.startswith(box)]
    yield "start: missing", lambda: face.move("start", "missing")


def outcome(act, box):
    try:
        value = act()
        return "did " + json.dumps(value, default=str).replace(box, "BOX")
    except Refused as refusal:
        return "refused: " + str(refusal).replace(box, "BOX")
    except (KeyError, IndexError, ValueError, subprocess.TimeoutExpired) as e:
        return f"no such answer: {e!r}"


faces = {"library": Library(), "cli": Cli(), "mcp": Mcp(program), "http": Http(program)}
rounds = {name: [(label, outcome(act, "box-" + name)) for label, act in cases(face, "box-" + name)] for name, face in faces.items()}
same = 0
for row in zip(*rounds.values()):
    labels, outcomes = {r[0] for r in row}, {r[1] for r in row}
    if len(labels) == 1 and len(outcomes) == 1:
        same += 1
        continue
    for name, (label, what) in zip(rounds, row):
        print(f"{label}: {name}: {what}")
for face in faces.values():
    if hasattr(face, "close"):
        face.close()
print(f"same: {same} operations")
