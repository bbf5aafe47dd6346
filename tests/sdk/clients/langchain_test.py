"""LangChain, over Chat Completions and Responses."""

import unittest

import openai
from langchain_core.messages import HumanMessage
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from client_check import DROPPING
from client_check import KEY
from client_check import RESULT
from client_check import TIMEOUT_S
from client_check import URL
from client_check import ClientCheck
from client_check import question


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return RESULT


class LangChainCheck(ClientCheck):
    uses_responses = False

    def create(self, model):
        chat = ChatOpenAI(
            base_url=URL,
            api_key=KEY,
            model=model,
            use_responses_api=self.uses_responses,
            max_retries=0,
            timeout=TIMEOUT_S,
        )
        return chat.bind_tools([get_weather])

    def ask(self, model, text):
        chat = self.create(model)
        messages = [HumanMessage(text)]
        reply = collect(chat.stream(messages))
        messages.append(reply)
        for call in reply.tool_calls:
            messages.append(ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]))
        return collect(chat.stream(messages)).text, [it["args"]["city"] for it in reply.tool_calls]

    def test_a_blocking_reply_that_is_cut_off_is_an_error(self):
        with self.assertRaisesRegex(self.error, "cut off"):
            self.create(DROPPING).invoke(question())


def collect(stream):
    chunks = list(stream)
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


class ChatCompletions(LangChainCheck, unittest.TestCase):
    error = openai.APIError


class Responses(LangChainCheck, unittest.TestCase):
    uses_responses = True
    error = (openai.APIError, ValueError)
