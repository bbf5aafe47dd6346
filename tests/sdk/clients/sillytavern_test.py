"""The server of SillyTavern, with its sources “Custom (OpenAI-compatible)” and “OpenAI” for chat
completions.

SillyTavern's page sends these requests to its own server, which forwards them to this one.
"""

import http.cookiejar
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from client_check import KEY
from client_check import RESULT
from client_check import TIMEOUT_S
from client_check import URL
from client_check import ClientCheck

PROGRAM = pathlib.Path(os.environ["SILLYTAVERN"])
# A folder with the libraries of its page, which its first start creates.
TEMPLATE = pathlib.Path(os.environ["SILLYTAVERN_DATA"])
PAUSE_S = 0.1
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class SillyTavern:
    """A running server with a session."""

    def __init__(self, folder):
        shutil.copytree(TEMPLATE, folder / "data")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        options = {"configPath": folder / "config.yaml", "dataRoot": folder / "data", "port": port}
        command = ["node", PROGRAM / "server.js", "--browserLaunchEnabled", "false"]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        shutil.copy(PROGRAM / "default/config.yaml", folder / "config.yaml")
        self.log = open(folder / "log", "w")
        self.process = subprocess.Popen(command, cwd=folder, stdout=self.log, stderr=self.log)
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(cookies)
        self.headers = {"content-type": "application/json"}

    def wait(self):
        end = time.monotonic() + TIMEOUT_S
        while True:
            try:
                self.headers["x-csrf-token"] = json.load(self.opener.open(f"{self.url}/csrf-token"))["token"]
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(PAUSE_S)

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), self.headers)
        with self.opener.open(request, timeout=TIMEOUT_S) as response:
            return response.read().decode()

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


class ChatCompletions(ClientCheck, unittest.TestCase):
    error = RuntimeError

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.server = SillyTavern(pathlib.Path(folder.name))
        cls.addClassCleanup(cls.server.close)
        cls.server.wait()
        cls.server.post("/api/secrets/write", {"key": "api_key_custom", "value": KEY, "label": "Troupe"})

    def ask(self, model, text):
        messages = [{"role": "user", "content": text}]
        asked = self.stream(model, messages)
        calls = asked["tool_calls"]
        messages.append({"role": "assistant", "content": asked["content"], "tool_calls": calls})
        for call in calls:
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": RESULT})
        answer = self.stream(model, messages)["content"]
        return answer, [json.loads(it["function"]["arguments"])["city"] for it in calls]

    def stream(self, model, messages, **more):
        """Returns the message in the chunks of a stream, as SillyTavern's page assembles it."""
        message = {"content": "", "tool_calls": []}
        try:
            text = self.generate(model, messages, stream=True, tools=[WEATHER], tool_choice="auto", **more)
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error
        for line in text.splitlines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            chunk = json.loads(line.removeprefix("data: "))
            if "error" in chunk:
                raise RuntimeError(chunk["error"]["message"])
            if chunk["choices"]:
                add_delta(message, chunk["choices"][0]["delta"])
        return message

    def generate(self, model, messages, **more):
        body = {
            "chat_completion_source": "custom",
            "custom_url": URL,
            "custom_include_body": "",
            "custom_exclude_body": "",
            "custom_include_headers": "",
            "custom_prompt_post_processing": "",
            "model": model,
            "messages": messages,
            "temperature": 1,
            "max_tokens": 300,
            "presence_penalty": 0,
            "frequency_penalty": 0,
            "top_p": 1,
            "stop": [],
            "logit_bias": {},
            "type": "normal",
            **more,
        }
        return self.server.post("/api/backends/chat-completions/generate", body)

    def test_a_blocking_completion_has_its_text(self):
        completion = self.generate("demo", [{"role": "user", "content": "Hello!"}], stream=False)

        self.assertIn("demo model", json.loads(completion)["choices"][0]["message"]["content"])

    def test_a_blocking_completion_that_fails_is_an_error(self):
        completion = self.generate("dropping", [{"role": "user", "content": "Hello!"}], stream=False)

        self.assertEqual(json.loads(completion)["error"], {"message": "Bad Gateway"})

    def test_the_source_openai_works_with_a_reverse_proxy(self):
        proxy = {"chat_completion_source": "openai", "reverse_proxy": URL, "proxy_password": KEY}
        messages = [{"role": "user", "content": "Hello!"}]

        streamed = self.stream("demo", messages, **proxy)
        completion = self.generate("demo", messages, stream=False, **proxy)

        self.assertIn("demo model", streamed["content"])
        self.assertIn("demo model", json.loads(completion)["choices"][0]["message"]["content"])

    def test_the_models_are_listed(self):
        source = {"chat_completion_source": "custom", "custom_url": URL}

        listed = json.loads(self.server.post("/api/backends/chat-completions/status", source))

        self.assertIn("demo", [it["id"] for it in listed["data"]])


def add_delta(message, delta):
    message["content"] += delta.get("content") or ""
    for piece in delta.get("tool_calls", []):
        if piece["index"] == len(message["tool_calls"]):
            message["tool_calls"].append(piece)
        else:
            function = message["tool_calls"][piece["index"]]["function"]
            function["arguments"] += piece["function"].get("arguments", "")
