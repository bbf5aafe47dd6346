"""An agent of the OpenAI Agents SDK that takes part in another person's space, through the HTTP API."""

import asyncio
import http.cookiejar
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


class Person:
    """A caller of the HTTP API, with a key or with a session of its own."""

    def __init__(self, key=None):
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(cookies)
        self.headers = {"content-type": "application/json"}
        if key:
            self.headers["authorization"] = f"Bearer {key}"

    def send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        url = f"{os.environ['TROUPE_URL']}/api{path}"
        request = urllib.request.Request(url, data, self.headers, method=method)
        with self.opener.open(request, timeout=TIMEOUT_S) as response:
            return json.load(response)


def join(invite):
    """Joins the space of an invite with a new account, and returns the key of the account."""
    person = Person()
    person.send("POST", f"/join/{invite['token']}", {"display_name": "Visitor"})
    account = {"username": f"visitor{uuid.uuid4().hex[:8]}", "password": "correct horse"}
    person.send("PATCH", "/users/me", account)
    return person.send("POST", "/api_keys", {"name": "agent"})["key"]


class Room(unittest.TestCase):
    def setUp(self):
        owner = Person(KEY)
        character = owner.send("POST", "/characters", {"name": "Mina", "description": "A clockmaker."})
        space = owner.send("POST", "/spaces", {"name": "The clock shop"})
        path = f"/spaces/{space['id']}"
        owner.send("POST", f"{path}/memberships", {"character_id": character["id"]})
        invite = owner.send("POST", f"{path}/invites", {"role": "guest", "max_uses": 1})
        self.key = join(invite)
        self.visitor = Person(self.key)
        self.conversation = f"/conversations/{space['root_conversation_id']}"

    def messages(self):
        return self.visitor.send("GET", f"{self.conversation}/messages")["data"]

    async def run_agent(self, text):
        @agents.function_tool
        def read_room() -> str:
            """The messages in the room."""
            return "\n".join(f"{it['author_name']}: {it['content']}" for it in self.messages())

        @agents.function_tool
        def post_message(content: str) -> str:
            """Posts a message in the room."""
            body = {"content": content, "client_id": str(uuid.uuid4())}
            return json.dumps(self.visitor.send("POST", f"{self.conversation}/messages", body))

        async with openai.AsyncOpenAI(base_url=URL, api_key=self.key, max_retries=0) as client:
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

        self.assertIn(f"Visitor: {LINE}", read)
        self.assertIn(f"Mina: {reply}", read)
