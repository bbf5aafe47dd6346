#!/usr/bin/env python3
"""An OpenAI-compatible server whose model refuses every request, on any free port.

It prints its port, and runs until it is killed.
"""

import http.server
import json

WORDS = ["I ", "cannot ", "help ", "with ", "that."]


class Refusing(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for word in WORDS:
            self.send({"index": 0, "delta": {"refusal": word}, "finish_reason": None})
        self.send({"index": 0, "delta": {}, "finish_reason": "stop"})
        self.wfile.write(b"data: [DONE]\n\n")

    def send(self, choice):
        self.wfile.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
print(server.server_port, flush=True)
server.serve_forever()
