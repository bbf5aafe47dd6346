"""The command `llm`, over Chat Completions."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from client_check import DROPPING
from client_check import HEALTHY_MODELS
from client_check import KEY
from client_check import LIMITED
from client_check import RESULT
from client_check import TIMEOUT_S
from client_check import URL
from client_check import ClientCheck

MODEL = """\
- model_id: troupe-{name}
  model_name: {name}
  api_base: {url}
  api_key_name: troupe
  supports_tools: true
"""
FUNCTION = f'''\
def get_weather(city: str) -> str:
    """The weather in a city."""
    with open("cities", "a") as file:
        print(city, file=file)
    return "{RESULT}"
'''


class Llm(ClientCheck, unittest.TestCase):
    error = RuntimeError

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        models = [MODEL.format(name=it, url=URL) for it in [*HEALTHY_MODELS, DROPPING, LIMITED]]
        (self.folder / "extra-openai-models.yaml").write_text("".join(models))
        (self.folder / "keys.json").write_text(json.dumps({"troupe": KEY}))
        (self.folder / "functions.py").write_text(FUNCTION)

    def ask(self, model, text):
        cities = self.folder / "cities"
        cities.write_text("")
        answer = self.run_llm("-m", f"troupe-{model}", "--functions", "functions.py", text)
        return answer, cities.read_text().splitlines()

    def run_llm(self, *arguments):
        command = [pathlib.Path(sys.executable).parent / "llm", *arguments]
        environment = {**os.environ, "LLM_USER_PATH": str(self.folder)}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=5 * TIMEOUT_S,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout

    def test_a_conversation_continues_with_its_history(self):
        self.run_llm("-m", "troupe-demo", "Hello!")

        answer = self.run_llm("-c", "And then?")

        # The demo model introduces itself once in a conversation.
        self.assertTrue(answer.strip())
        self.assertNotIn("demo model", answer)
