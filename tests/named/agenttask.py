#!/usr/bin/env python3
"""The whole course of an agent's work, from this directory: agenttask.py AGENTKERNEL mcp|http|LIBCALL.

Writes a project in a named sandbox, installs a dependency, runs its tests in the background and reads what they have printed so
far, takes a checkpoint, breaks things, goes back, forks twice, fetches the results and cleans up. Prints each call that fails
and each answer that is not as it must be, then "done".
"""
import atexit
import base64
import io
import json
import shutil
import subprocess
import sys
import tarfile
import time

from faces import HttpServer, McpSession, call_library

program, face = sys.argv[1:3]


class Mcp(McpSession):
    def call(self, tool, _method, _path, arguments):
        result = self.ask("tools/call", name=tool, arguments=arguments).get("result", {"isError": True})
        if result.get("isError"):
            print(tool, arguments, json.dumps(result)[:300])
        return result.get("structuredContent") or json.loads(result["content"][0]["text"] or "{}") if not result.get("isError") else {}


class Http(HttpServer):
    def call(self, _tool, method, path, arguments):
        arguments = dict(arguments)
        for key in ("name", "id", "path"):
            if "{" + key + "}" in path:
                path = path.replace("{" + key + "}", str(arguments.pop(key)).lstrip("/"))
        if method in ("GET", "DELETE"):
            query = "&".join(f"{key}={value}" for key, value in arguments.items())
            status, text = self.request(method, path + ("?" + query if query else ""))
        else:
            status, text = self.request(method, path, json.dumps(arguments))
        if status >= 300:
            print(method, path, arguments, status, text[:300])
            return {}
        answer = json.loads(text or "{}")
        return answer.get("data", answer) if isinstance(answer, dict) else {"list": answer}


class Library:
    def call(self, operation, _method, _path, arguments):
        done, result = call_library(program, face, operation, arguments)
        if not done:
            print(operation, arguments, result[:300])
        return result if done else {}


server = Mcp(program) if face == "mcp" else Http(program) if face == "http" else Library()
if face in ("mcp", "http"):
    atexit.register(server.process.kill)
BOX = "/sandboxes/{name}"


def expect(what, words):
    if not what:
        print("wrong:", words)


def run(command, name="task", **more):
    return server.call("sandbox_exec", "POST", BOX + "/exec", {"name": name, "command": command, **more})


def read(path, name="task"):
    return server.call("sandbox_file_read", "GET", BOX + "/files/{path}", {"name": name, "path": path}).get("content")


def write(path, text):
    server.call("sandbox_file_write", "PUT", BOX + "/files/{path}", {"name": "task", "path": path, "content": text})


# ---- a sandbox, and various commands ----

server.call("sandbox_create", "POST", "/sandboxes", {"name": "task"})
for command in (["python3", "-c", "print(1)"], ["sh", "-c", "echo"], ["bash", "-c", "echo"], ["node", "-e", "0"], ["make", "--version"],
                ["gcc", "--version"], ["npm", "--version"]):
    if shutil.which(command[0], path="/usr/local/bin:/usr/bin:/bin"):
        expect(run(command).get("exit_code") == 0, command)

# ---- a project with a dependency ----

home = run("printf %s ~").get("stdout") or "/root"
there = {"cwd" if face != "http" else "workdir": f"{home}/app"}
write(f"{home}/app/package.json", '{"name": "app", "version": "1.0.0", "dependencies": {"greet": "file:../greet"}}')
write(f"{home}/app/test.js", 'for (let i = 0; i < 3; i++) setTimeout(() => console.log("pass", i, require("greet")), 400 * i)\n')
archive = io.BytesIO()
with tarfile.open(fileobj=archive, mode="w") as tar:
    for name, text in (("package.json", '{"name": "greet", "version": "1.0.0", "main": "index.js"}'), ("index.js", 'module.exports = "hello"\n')):
        entry = tarfile.TarInfo(name)
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text.encode()))
if face != "http":
    server.call("sandbox_upload", "", "", {"name": "task", "path": f"{home}/greet", "tar": base64.b64encode(archive.getvalue()).decode()})
else:
    status, text = server.request("PUT", f"/sandboxes/task/archive?path={home}/greet", archive.getvalue(), "application/x-tar")
    expect(status < 300, text)
has_npm = shutil.which("npm", path="/usr/local/bin:/usr/bin:/bin")
installed = run("npm install --offline --no-audit --no-fund" if has_npm else "mkdir -p node_modules && cp -r ../greet node_modules/greet",
                **there, timeout_ms=120000)
expect(installed.get("exit_code") == 0, installed)

# ---- its tests, in the background ----

tests = ["node", "test.js"] if shutil.which("node", path="/usr/local/bin:/usr/bin:/bin") else ["sh", "-c", "echo pass 0 hello; sleep 1; echo pass 2 hello"]
started = server.call("sandbox_exec_start", "POST", BOX + "/exec/detach",
                      {"name": "task", "command": tests, **there})
task = started.get("id")
logs = BOX + "/exec/detached/{id}/logs"
for _ in range(100):
    part = server.call("sandbox_exec_output", "GET", logs, {"name": "task", "id": task})
    text = part.get("output") or part.get("stdout") or ""
    if "pass 0 hello" in text:
        break
    time.sleep(0.05)
expect("pass 0 hello" in text, f"output so far: {part}")
ended = server.call("sandbox_exec_wait", "GET", BOX + "/exec/detached/{id}/wait", {"name": "task", "id": task, "timeout_ms": 20000})
expect(ended.get("running") is False and ended.get("exit_code") == 0, ended)
part = server.call("sandbox_exec_output", "GET", logs, {"name": "task", "id": task})
expect("pass 2 hello" in (part.get("output") or part.get("stdout") or ""), part)

# ---- a checkpoint, a mistake, a restore ----

if face != "http":
    mark = server.call("sandbox_checkpoint", "", "", {"name": "task", "comment": "tests pass"}).get("id")
else:
    mark = "tests-pass"  # its name works like an id
    server.call("", "POST", "/snapshots", {"sandbox": "task", "name": mark})
server.call("sandbox_file_edit", "POST", BOX + "/edit", {"name": "task", "path": f"{home}/app/test.js", "old_text": "greet", "new_text": "no-such"})
expect("no-such" in (read(f"{home}/app/test.js") or ""), "the edit")
server.call("sandbox_file_remove", "DELETE", BOX + "/files/{path}", {"name": "task", "path": f"{home}/greet/index.js"})
if face != "http":
    server.call("sandbox_restore", "", "", {"name": "task", "id": mark})
else:
    server.call("", "POST", "/snapshots/{id}/restore", {"id": mark})
expect("greet" in (read(f"{home}/app/test.js") or "") and read(f"{home}/greet/index.js"), "all is back")

# ---- two forks, and the results ----

for name in ("task-2", "task-3"):
    server.call("sandbox_fork", "POST", BOX + "/fork", {"name": "task", "new_name": name})
    expect(run(f"echo {name} >~/result && cat ~/greet/index.js >>~/result", name).get("exit_code") == 0, name)
    expect((read(f"{home}/result", name) or "").startswith(name), f"the result of {name}")
if face != "http":
    got = base64.b64decode(server.call("sandbox_download", "", "", {"name": "task-2", "path": f"{home}/greet"}).get("tar", ""))
else:
    status, got = server.request("GET", f"/sandboxes/task-2/archive?path={home}/greet")
    expect(status == 200, got[:200])
with tarfile.open(fileobj=io.BytesIO(got)) as tar:
    expect(any(name.endswith("index.js") for name in tar.getnames()), tar.getnames())

# ---- cleaning up ----

for tool, method, path in (("sandbox_pause", "POST", "/pause"), ("sandbox_resume", "POST", "/resume"), ("sandbox_stop", "POST", "/stop"),
                           ("sandbox_start", "POST", "/start"), ("sandbox_stop", "POST", "/stop")):
    server.call(tool, method, BOX + path, {"name": "task"})
if face != "http":
    server.call("checkpoint_remove", "", "", {"id": mark})
else:
    server.call("", "DELETE", "/snapshots/{id}", {"id": mark})
for name in ("task", "task-2", "task-3"):
    server.call("sandbox_remove", "DELETE", BOX, {"name": name})
expect(not subprocess.run([program, "list", "--all", "--quiet"], capture_output=True, text=True, check=False).stdout.strip(), "sandboxes are left")
print("done")
