"""mcp - tools/call of sandbox_run with `true`, against the command line's own run of it.

usage: mcp.py AGENTKERNEL ROUNDS

Interleaved: one of each, ROUNDS times. Then 200 calls, 20 at a time.
"""
import json
import os
import statistics
import subprocess
import sys
import time

program, rounds = sys.argv[1], int(sys.argv[2])
server = subprocess.Popen([program, "mcp", "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(message):
    server.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
    server.stdin.flush()


def receive():
    return json.loads(server.stdout.readline())


def call(number):
    send({"id": number, "method": "tools/call",
          "params": {"name": "sandbox_run", "arguments": {"command": ["/bin/true"]}}})


send({"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
receive()
times = {"mcp": [], "cli": []}
for i in range(rounds + 5):
    begin = time.perf_counter()
    call(i)
    assert receive()["result"]["structuredContent"]["exit_code"] == 0
    middle = time.perf_counter()
    os.waitpid(os.posix_spawn(program, [program, "run", "/bin/true"], os.environ), 0)
    end = time.perf_counter()
    if i >= 5:
        times["mcp"].append(middle - begin)
        times["cli"].append(end - middle)
mcp, cli = (statistics.median(times[key]) * 1000 for key in ("mcp", "cli"))
print(f"  tools/call {mcp:.2f} ms, run {cli:.2f} ms (medians): {mcp / cli:.2f} x")
begin = time.perf_counter()
sent = done = 0
while done < 200:
    while sent < 200 and sent - done < 20:
        call(sent)
        sent += 1
    assert receive()["result"]["structuredContent"]["exit_code"] == 0
    done += 1
print(f"  200 calls, 20 at a time: {time.perf_counter() - begin:.2f} s, all right")
server.stdin.close()
server.wait()
