"""An agent of the OpenAI Agents SDK that takes part in a space, through the HTTP API."""

import asyncio
import json
import os
import time
import unittest
import urllib.request
import uuid

import agents
import openai

from client_check import KEY
from client_check import TIMEOUT_S
from client_check import URL

agents.set_tracing_disabled(True)

MODEL = "steady"
PAUSE_S = 0.1
LINE = "Which clock is the oldest?"


def send(method, path, body=None):
    """Sends a request with the key of a member, and returns the response."""
    request = urllib.request.Request(
        f"{os.environ['TROUPE_URL']}/api{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": f"Bearer {KEY}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        return json.load(response)


class Room(unittest.TestCase):
    def setUp(self):
        character = send("POST", "/characters", {"name": "Mina", "description": "A clockmaker."})
        space = send("POST", "/spaces", {"name": "The clock shop"})
        send("POST", f"/spaces/{space['id']}/memberships", {"character_id": character["id"]})
        self.conversation = f"/conversations/{space['root_conversation_id']}"

    def messages(self):
        return send("GET", f"{self.conversation}/messages")["data"]

    async def run_agent(self, text):
        @agents.function_tool
        def read_room() -> str:
            """The messages in the room."""
            return "\n".join(f"{it['author_name']}: {it['content']}" for it in self.messages())

        @agents.function_tool
        def post_message(content: str) -> str:
            """Posts a message in the room."""
            body = {"content": content, "client_id": str(uuid.uuid4())}
            return json.dumps(send("POST", f"{self.conversation}/messages", body))

        async with openai.AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0) as client:
            model = agents.OpenAIResponsesModel(MODEL, openai_client=client)
            agent = agents.Agent(name="Visitor", model=model, tools=[read_room, post_message])
            return (await agents.Runner.run(agent, text)).final_output

    def wait_for_reply(self):
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            replies = [it for it in self.messages() if it["author_name"] == "Mina"]
            if replies and replies[-1]["content"]:
                return replies[-1]["content"]
            time.sleep(PAUSE_S)
        self.fail("no character replied")

    def test_an_agent_posts_in_a_space_and_reads_the_reply_of_a_character(self):
        call = json.dumps({"content": LINE})
        asyncio.run(self.run_agent(f"Ask something.\nCALL post_message {call}"))
        reply = self.wait_for_reply()

        read = asyncio.run(self.run_agent("What was said?\nCALL read_room {}"))

        self.assertIn(LINE, read)
        self.assertIn(f"Mina: {reply}", read)
