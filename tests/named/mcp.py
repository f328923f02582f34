# mcp.py PROGRAM [OPTION...] -- TOOL JSON [TOOL JSON...] - one session with an MCP server, calls in
# sequence; prints each answer's text, or "refused: MESSAGE".
import json
import subprocess
import sys

split = sys.argv.index("--")
server = subprocess.Popen([sys.argv[1], "mcp", "server"] + sys.argv[2:split], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True)


def ask(number, method, params):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    server.stdin.flush()
    while True:
        answer = json.loads(server.stdout.readline())
        if answer.get("id") == number:
            return answer


ask(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
calls = sys.argv[split + 1:]
for i in range(0, len(calls), 2):
    answer = ask(i + 1, "tools/call", {"name": calls[i], "arguments": json.loads(calls[i + 1])})
    result = answer.get("result", {})
    text = " ".join(c.get("text", "") for c in result.get("content", [])) or json.dumps(answer.get("error"))
    print(("refused: " if result.get("isError") or "error" in answer else "") + text)
server.stdin.close()
server.wait()
