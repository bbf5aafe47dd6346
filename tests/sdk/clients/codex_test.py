"""The Codex command line program, over Responses and the WebSocket of Responses: it runs the commands
that the model calls.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest
import uuid

from client_check import DROPPING
from client_check import HEALTHY_MODELS
from client_check import KEY
from client_check import LIMITED
from client_check import TIMEOUT_S
from client_check import URL

PROGRAM = os.environ["CODEX"]
# A failure of a stream is final, so that a test does not wait for repetitions. Without its plugins,
# Codex needs no website.
CONFIG = """\
model_provider = "troupe"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
apps = false
plugins = false

[model_providers.troupe]
name = "Troupe"
base_url = "{url}"
env_key = "TROUPE_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = {uses_socket}
"""


class CodexCheck:
    uses_socket = False

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name) / "home"
        self.folder = pathlib.Path(folder.name) / "work"
        self.home.mkdir()
        self.folder.mkdir()
        (self.home / "config.toml").write_text(
            CONFIG.format(url=URL, uses_socket=str(self.uses_socket).lower())
        )

    def run_codex(self, model, text, *more):
        command = [PROGRAM, "exec", *more, "--skip-git-repo-check", f"--model={model}", text]
        environment = {
            **os.environ,
            "CODEX_HOME": str(self.home),
            "RUST_LOG": "codex_api=info",
            "TROUPE_KEY": KEY,
        }
        # The tests run on machines where Codex cannot create a sandbox of its own.
        command.insert(2, "--dangerously-bypass-approvals-and-sandbox")
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=5 * TIMEOUT_S,
        )

    def test_a_command_is_run_and_its_output_reaches_the_model(self):
        for model in [it for it in HEALTHY_MODELS if it != "demo"]:
            with self.subTest(model):
                call = 'CALL exec_command {"cmd": "echo Rain in Oslo. | tee note.txt"}'

                done = self.run_codex(model, f"Write a note. {uuid.uuid4()}\n{call}")

                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual((self.folder / "note.txt").read_text(), "Rain in Oslo.\n")
                self.assertIn("The tool returned:", done.stdout)
                self.assertIn("Rain in Oslo.", done.stdout)

    def test_a_session_continues_with_its_history(self):
        first = self.run_codex("demo", "Hello!")
        self.assertEqual(first.returncode, 0, first.stderr)

        done = self.run_codex("demo", "And then?", "resume", "--last")

        self.assertEqual(done.returncode, 0, done.stderr)
        # The demo model introduces itself once in a conversation.
        self.assertTrue(done.stdout.strip())
        self.assertNotIn("demo model", done.stdout)

    def test_a_failed_response_is_an_error(self):
        for model, message in [(DROPPING, "cut off"), (LIMITED, "(?i)rate limit")]:
            with self.subTest(model):
                done = self.run_codex(model, "Hello!")

                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, message)

    def test_the_socket_is_used_if_the_configuration_says_so(self):
        done = self.run_codex("demo", "Hello!")

        is_connected = "successfully connected to Responses WebSocket" in done.stderr
        self.assertEqual(is_connected, self.uses_socket, done.stderr)


class Responses(CodexCheck, unittest.TestCase):
    pass


class ResponsesOverWebSocket(CodexCheck, unittest.TestCase):
    uses_socket = True
