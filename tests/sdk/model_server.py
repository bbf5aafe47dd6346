#!/usr/bin/env python3
"""An OpenAI-compatible server on any free port, whose models do what the demo model never does.

`refusing` refuses every request, and `endless` writes until the connection is closed. The others do
what the newest message of the user says: a line `CALL name {"argument": 1}` calls a tool, and the
text between the lines `SAY` and `END` is the reply; a result of a tool is repeated. `steady` does
just that; `slow` waits before its first output, `failing` answers 500 to the first request of each
text, `limited` answers 429 to all of them, and `dropping` closes the connection within a reply.

It prints its port, and runs until it is killed.
"""

import http.server
import itertools
import json
import re
import threading
import time

REFUSAL = ["I ", "cannot ", "help ", "with ", "that."]
PAUSE_S = 0.05
# Long enough to be noticed, and short for a test.
SLOW_S = 1
CALL = re.compile(r"^CALL (\S+) (\{.*\})$", re.MULTILINE)
SAY = re.compile(r"^SAY\n(.*?)\nEND$", re.MULTILINE | re.DOTALL)


def text_of(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def newest_text(messages):
    users = [it for it in messages if it["role"] == "user"]
    return text_of(users[-1]) if users else ""


def next_call(request):
    """Returns the name and the arguments of the tool to call, or nothing."""
    if not request.get("tools") or request["messages"][-1]["role"] == "tool":
        return None
    found = CALL.search(newest_text(request["messages"]))
    return found.groups() if found else None


def reply_to(messages):
    if messages[-1]["role"] == "tool":
        return f"The tool returned: {text_of(messages[-1])}"
    found = SAY.search(newest_text(messages))
    return found.group(1) if found else "This is a scripted reply."


class FirstTimes:
    """Remembers which texts were seen."""

    def __init__(self):
        self.lock = threading.Lock()
        self.seen = set()

    def is_first(self, text):
        with self.lock:
            is_first = text not in self.seen
            self.seen.add(text)
            return is_first


FIRST_TIMES = FirstTimes()


class Models(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        model = request["model"]
        if model == "limited":
            return self.fail(429, "Too many requests.", ("retry-after", "1"))
        if model == "failing" and FIRST_TIMES.is_first(newest_text(request["messages"])):
            return self.fail(500, "The model has failed.")
        if model == "slow":
            time.sleep(SLOW_S)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if model == "endless":
            self.write_endlessly()
        elif model == "refusing":
            self.refuse()
        elif model == "dropping":
            self.drop()
        else:
            self.follow_script(request)

    def fail(self, status, message, *headers):
        body = json.dumps({"error": {"message": message, "type": "error", "code": None}}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def follow_script(self, request):
        call = next_call(request)
        if call:
            self.call(*call)
        else:
            for piece in re.findall(r"\s*\S+\s*", reply_to(request["messages"])):
                self.send({"content": piece})
            self.send({}, finish_reason="stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def call(self, name, arguments):
        half = len(arguments) // 2
        function = {"name": name, "arguments": arguments[:half]}
        self.send({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
        self.send({"tool_calls": [{"index": 0, "function": {"arguments": arguments[half:]}}]})
        self.send({}, finish_reason="tool_calls")

    def drop(self):
        for number in range(3):
            self.send({"content": f"{number} "})
            time.sleep(PAUSE_S)

    def refuse(self):
        for word in REFUSAL:
            self.send({"refusal": word})
        self.send({}, finish_reason="stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def write_endlessly(self):
        try:
            for number in itertools.count():
                self.send({"content": f"{number} "})
                time.sleep(PAUSE_S)
        except ConnectionError:
            pass

    def send(self, delta, finish_reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        self.wfile.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Clients close connections whenever they want."""


server = Server(("127.0.0.1", 0), Models)
print(server.server_port, flush=True)
server.serve_forever()
