"""Aider, which edits a file as the model requests, over Chat Completions."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import uuid

from client_check import DROPPING
from client_check import HEALTHY_MODELS
from client_check import KEY
from client_check import LIMITED
from client_check import TIMEOUT_S
from client_check import URL

OLD = 'print("old")\n'
NEW = 'print("new")\n'
EDIT = f"""\
SAY
hello.py
```python
<<<<<<< SEARCH
{OLD}=======
{NEW}>>>>>>> REPLACE
```
END"""
OPTIONS = [
    "--edit-format=diff",
    "--map-tokens=0",
    "--no-analytics",
    "--no-check-update",
    "--no-detect-urls",
    "--no-git",
    "--no-show-model-warnings",
    "--no-show-release-notes",
    "--yes-always",
]


class Run:
    """Aider with a model, in a folder with one file."""

    def __init__(self, folder, model):
        self.file = folder / "hello.py"
        self.file.write_text(OLD)
        # Without this file, Aider reads the prices of models from a website.
        prices = folder / ".aider/caches/model_prices_and_context_window.json"
        prices.parent.mkdir(parents=True)
        prices.write_text(f'{{"{model}": {{}}}}')
        command = [
            pathlib.Path(sys.executable).parent / "aider",
            f"--model=openai/{model}",
            f"--openai-api-base={URL}",
            f"--openai-api-key={KEY}",
            f"--message=Change the file. {uuid.uuid4()}\n{EDIT}",
            *OPTIONS,
            self.file,
        ]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def printed(self):
        """Returns everything that Aider prints."""
        return self.process.communicate(timeout=5 * TIMEOUT_S)[0]

    def printed_until(self, message):
        """Returns what Aider prints, at most until the message."""
        printed = ""
        for line in self.process.stdout:
            # Aider breaks long lines.
            printed += line.strip() + " "
            if re.search(message, printed):
                break
        return printed

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Aider(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Starts Aider with all models at once: it starts slowly, and repeats failed calls after pauses."""
        cls.runs = {}
        for model in [*HEALTHY_MODELS, DROPPING, LIMITED]:
            folder = tempfile.TemporaryDirectory()
            cls.addClassCleanup(folder.cleanup)
            cls.runs[model] = Run(pathlib.Path(folder.name), model)
            cls.addClassCleanup(cls.runs[model].close)

    def test_a_file_is_edited(self):
        for model in [it for it in HEALTHY_MODELS if it != "demo"]:
            with self.subTest(model):
                printed = self.runs[model].printed()

                self.assertEqual(self.runs[model].file.read_text(), NEW, printed)

    def test_the_demo_model_replies_without_an_edit(self):
        printed = self.runs["demo"].printed()

        self.assertIn("demo model", printed)
        self.assertEqual(self.runs["demo"].file.read_text(), OLD)

    def test_a_failed_reply_is_an_error_and_no_edit(self):
        for model, message in [(DROPPING, "cut off"), (LIMITED, "(?i)rate limit")]:
            with self.subTest(model):
                printed = self.runs[model].printed_until(message)

                self.assertRegex(printed, message)
                self.assertEqual(self.runs[model].file.read_text(), OLD)
