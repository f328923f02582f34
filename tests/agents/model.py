#!/usr/bin/env python3
"""model.py - a model service that says what a test wrote, for coding agents.

Theory of operation. It speaks three APIs on one port of the loopback interface, each as its agent
uses it: Anthropic's Messages (claude), OpenAI's Responses (codex), Gemini's generateContent and
streamGenerateContent (gemini). A test posts a list of turns to /script. Every request that offers
tools takes the next turn:

	{"call": "sandbox_run", "with": {...}}    calls the offered tool whose name is or ends with that;
	                                          a text as "with" is the input of a free-form tool
	{"say": "it printed {result}"}            answers; {result} is the last tool result, as the
	                                          agent sent it back

Requests without tools (titles, routing, token counts) are answered and take no turn. So the order
of the turns is the test's, and what happens between them is the agent's own work.

Each request that took a turn is a line of JSON in LOG: the offered tools, the key, and the
conversation as the agent sent it, in prompts, calls, results and answers.

usage: model.py LOG    prints its port
"""
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = 7  # tokens, for everything: nobody checks them
JSON_ANSWER = json.dumps({"reasoning": "none", "model_choice": "flash", "next_speaker": "user",
                          "complexity_reasoning": "none", "complexity_score": 1, "title": "test"})


class Conversation:
    def __init__(self):
        self.prompts, self.calls, self.results, self.answers = [], [], [], []
        self.tools = {}  # name -> name space, or None

    def find_tool(self, name):
        for offered, space in self.tools.items():
            if offered == name or offered.endswith("_" + name):
                return offered, space
        return None, None

    def record(self):
        return {"prompts": self.prompts, "calls": self.calls, "results": self.results,
                "answers": self.answers, "tools": sorted(self.tools)}


def text_of(content):
    """The text in what is a string, a list of parts, or one part."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return content["text"] if "text" in content else json.dumps(content)
    return "".join(text_of(part) for part in content or [])


# ---- Anthropic: POST /v1/messages ----

def read_messages(body):
    c = Conversation()
    for message in body.get("messages", []):
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            if part["type"] == "text":
                said = {"user": c.prompts, "assistant": c.answers}.get(message["role"], [])
                said.append(part["text"])
            elif part["type"] == "tool_use":
                c.calls.append(part["name"])
            elif part["type"] == "tool_result":
                c.results.append(text_of(part.get("content")))
    c.tools = {tool["name"]: None for tool in body.get("tools") or []}
    return c


def write_messages(body, serial, turn):
    message = {"id": f"msg_{serial}", "type": "message", "role": "assistant", "content": [],
               "model": body.get("model", "mock"), "stop_reason": None, "stop_sequence": None,
               "usage": {"input_tokens": USAGE, "output_tokens": USAGE}}
    if "call" in turn:
        whole = {"type": "tool_use", "id": f"toolu_{serial}", "name": turn["call"], "input": turn["with"]}
        empty = dict(whole, input={})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn["with"])}
    else:
        whole, empty = {"type": "text", "text": turn["say"]}, {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": turn["say"]}
    stop = "tool_use" if "call" in turn else "end_turn"
    if not body.get("stream"):
        return [(None, dict(message, content=[whole], stop_reason=stop))]
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
         "usage": {"output_tokens": USAGE}},
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events]


# ---- OpenAI: POST /v1/responses ----

def read_responses(body):
    c = Conversation()
    for item in body.get("input", []):
        kind = item.get("type", "message")
        if kind == "message" and item["role"] in ("user", "assistant"):
            (c.prompts if item["role"] == "user" else c.answers).append(text_of(item["content"]))
        elif kind in ("function_call", "custom_tool_call"):
            c.calls.append(item["name"])
        elif kind in ("function_call_output", "custom_tool_call_output"):
            c.results.append(text_of(item["output"]))
    # for models that write JavaScript, the tools are an item of the input
    tools = list(body.get("tools") or [])
    for item in body.get("input", []):
        tools += item["tools"] if item.get("type") == "additional_tools" else []
    for tool in tools:
        if tool["type"] == "namespace":
            c.tools.update({inner["name"]: tool["name"] for inner in tool["tools"]})
        else:
            c.tools[tool.get("name", tool["type"])] = None
    return c


def write_responses(_body, serial, turn):
    if "call" not in turn:
        item = {"type": "message", "role": "assistant", "id": f"msg_{serial}",
                "content": [{"type": "output_text", "text": turn["say"]}]}
    elif isinstance(turn["with"], str):
        item = {"type": "custom_tool_call", "id": f"ctc_{serial}", "call_id": f"call_{serial}",
                "name": turn["call"], "input": turn["with"]}
    else:
        item = {"type": "function_call", "id": f"fc_{serial}", "call_id": f"call_{serial}",
                "name": turn["call"], "arguments": json.dumps(turn["with"])}
    if turn.get("space"):
        item["namespace"] = turn["space"]
    usage = {"input_tokens": USAGE, "input_tokens_details": None, "output_tokens": USAGE,
             "output_tokens_details": None, "total_tokens": 2 * USAGE}
    events = [
        {"type": "response.created", "response": {"id": f"resp_{serial}"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": f"resp_{serial}", "usage": usage}},
    ]
    return [(event["type"], event) for event in events]


# ---- Gemini: POST /v1beta/models/NAME:generateContent, :streamGenerateContent ----

def read_contents(body):
    c = Conversation()
    for content in body.get("contents", []):
        for part in content.get("parts", []):
            if "text" in part:
                (c.answers if content.get("role") == "model" else c.prompts).append(part["text"])
            elif "functionCall" in part:
                c.calls.append(part["functionCall"]["name"])
            elif "functionResponse" in part:
                response = part["functionResponse"]["response"]
                c.results.append(text_of(response.get("output", response)))
    for tool in body.get("tools") or []:
        c.tools.update({f["name"]: None for f in tool.get("functionDeclarations", [])})
    return c


def write_contents(body, serial, turn):
    if "call" in turn:
        part = {"functionCall": {"id": f"call_{serial}", "name": turn["call"], "args": turn["with"]}}
    elif "json" in body.get("generationConfig", {}).get("responseMimeType", ""):
        part = {"text": JSON_ANSWER}
    else:
        part = {"text": turn["say"]}
    return [(None, {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": USAGE, "candidatesTokenCount": USAGE, "totalTokenCount": 2 * USAGE},
        "modelVersion": "mock", "responseId": f"resp_{serial}",
    })]


# ---- the service ----

class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    script, serial, log = [], 0, None

    def log_message(self, *_):
        pass

    def send(self, status, kind, data):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_json(self, value, status=200):
        self.send(status, "application/json", json.dumps(value).encode())

    def do_GET(self):
        path = self.path.split("?")[0]
        if path.endswith("/models"):
            self.send_json({"object": "list", "data": [], "models": []})
        elif path.endswith("/responses"):
            self.send_json({"error": {"message": "no web sockets"}}, 426)
        else:
            self.send_json({"error": {"message": "not here"}}, 404)

    def do_HEAD(self):
        self.send(200, "text/plain", b"")

    def key(self):
        names = ("x-api-key", "x-goog-api-key", "Authorization")
        return next((self.headers[name] for name in names if self.headers[name]), "none")

    def next_turn(self, c):
        """What the script says, in the words of this request; a request without tools takes no turn."""
        cls = Model
        with cls.lock:
            cls.serial += 1
            if not c.tools:
                return cls.serial, {"say": "nothing"}
            turn = dict(cls.script.pop(0)) if cls.script else {"say": "the script is over"}
            cls.log.write(json.dumps(dict(c.record(), key=[self.key()])) + "\n")
            cls.log.flush()
        if "call" in turn:
            name, turn["space"] = c.find_tool(turn["call"])
            if name is None:
                return cls.serial, {"say": f"no tool {turn['call']} among {sorted(c.tools)}"}
            turn["call"] = name
        else:
            turn["say"] = turn["say"].replace("{result}", c.results[-1] if c.results else "(no result)")
        return cls.serial, turn

    def answer(self, body, read, write, is_stream):
        serial, turn = self.next_turn(read(body))
        events = write(body, serial, turn)
        if not is_stream:
            self.send_json(events[-1][1])
            return
        lines = []
        for name, event in events:
            lines.append((f"event: {name}\n" if name else "") + f"data: {json.dumps(event)}\n\n")
        self.send(200, "text/event-stream", "".join(lines).encode())

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(text or "{}")
        path = self.path.split("?")[0]
        if path == "/script":
            with Model.lock:
                Model.script = body
            self.send_json({})
        elif path.endswith("/count_tokens"):
            self.send_json({"input_tokens": USAGE})
        elif path.endswith(":countTokens"):
            self.send_json({"totalTokens": USAGE})
        elif path.endswith("/messages"):
            self.answer(body, read_messages, write_messages, body.get("stream"))
        elif path.endswith("/responses"):
            self.answer(body, read_responses, write_responses, True)
        elif path.endswith(("generateContent", "streamGenerateContent")):
            self.answer(body, read_contents, write_contents, "alt=sse" in self.path)
        else:
            self.send_json({"error": {"message": "not here"}}, 404)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    Model.log = open(sys.argv[1], "a", encoding="utf-8")
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
