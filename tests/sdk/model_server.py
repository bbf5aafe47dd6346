#!/usr/bin/env python3
"""An OpenAI-compatible server with two models, on any free port: `refusing` refuses every request,
`endless` writes until the connection is closed.

It prints its port, and runs until it is killed.
"""

import http.server
import itertools
import json
import time

REFUSAL = ["I ", "cannot ", "help ", "with ", "that."]
PAUSE_S = 0.05


class Models(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if request["model"] == "endless":
            self.write_endlessly()
        else:
            self.refuse()

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


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Models)
print(server.server_port, flush=True)
server.serve_forever()
