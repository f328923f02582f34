#!/usr/bin/env python3
"""The usual course of an agent over MCP, from this directory: agenttask.py AGENTKERNEL. Prints each call that fails."""
import json
import shutil
import subprocess
import sys

server = subprocess.Popen([sys.argv[1], "mcp", "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
number = 0


def ask(method, **params):
    global number
    number += 1
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    server.stdin.flush()
    while True:
        answer = json.loads(server.stdout.readline())
        if answer.get("id") == number:
            return answer


def tool(tool_name, **arguments):
    result = ask("tools/call", name=tool_name, arguments=arguments).get("result", {"isError": True})
    if result.get("isError"):
        print(tool_name, arguments, json.dumps(result)[:300])
    return result.get("structuredContent") or {}


ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})
tool("sandbox_create", name="task")
commands = (["python3", "-c", "print(1)"], ["sh", "-c", "echo"], ["bash", "-c", "echo"], ["make", "--version"], ["gcc", "--version"])
for command in (c for c in commands if shutil.which(c[0])):
    if tool("sandbox_exec", name="task", command=command).get("exit_code") != 0:
        print(command, "failed")
tool("sandbox_file_write", name="task", path="/root/file", content="one")
mark = tool("sandbox_checkpoint", name="task")["id"]
tool("sandbox_file_write", name="task", path="/root/file", content="two")
tool("sandbox_restore", name="task", id=mark)
if tool("sandbox_file_read", name="task", path="/root/file").get("content") != "one":
    print("not restored")
tool("sandbox_fork", name="task", new_name="task-2")
for name in ("sandbox_stop", "sandbox_start", "sandbox_stop", "sandbox_remove"):
    tool(name, name="task")
tool("sandbox_remove", name="task-2")
server.stdin.close()
print("done")
