"""The faces for programs, as the tests use them: one MCP session, one HTTP server, the library through libcall."""
import http.client
import json
import os
import socket
import subprocess
import time


class McpSession:
    def __init__(self, program, *options):
        self.process = subprocess.Popen([program, "mcp", "server", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.number = 0
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})

    def ask(self, method, **params):
        """The whole answer: with "result" or "error"."""
        self.number += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.number:
                return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class HttpServer:
    def __init__(self, program, *options):
        self.socket = os.path.join(os.environ["AGENTKERNEL_HOME"], "test-%d.sock" % os.getpid())
        self.process = subprocess.Popen([program, "serve", "--listen", "unix:" + self.socket, *options], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            if os.path.exists(self.socket):
                break
            time.sleep(0.05)

    def request(self, method, path, body=None, kind="application/json"):
        """Status and bytes."""
        c = http.client.HTTPConnection("localhost", timeout=60)
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(self.socket)
        c.request(method, path, body, {"Content-Type": kind} if body is not None else {})
        answer = c.getresponse()
        return answer.status, answer.read()

    def close(self):
        self.process.terminate()
        self.process.wait()


def call_library(program, libcall, operation, arguments):
    """True and the result, or False and the words."""
    r = subprocess.run([libcall, operation, json.dumps(arguments)], capture_output=True, text=True, timeout=120,
                       env={**os.environ, "AGENTKERNEL_PROGRAM": program})
    return (False, r.stdout) if r.returncode else (True, json.loads(r.stdout))
