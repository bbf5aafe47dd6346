"""Pydantic AI, over Chat Completions and Responses."""

import unittest

import openai
from pydantic_ai import Agent
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from client_check import DROPPING
from client_check import KEY
from client_check import RESULT
from client_check import TIMEOUT_S
from client_check import URL
from client_check import ClientCheck
from client_check import question


class PydanticAiCheck(ClientCheck):
    """Asks an agent whose model is of the class `model_class`."""

    model_class = None
    error = (AgentRunError, openai.APIError)

    def create(self, model, cities):
        client = openai.AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0, timeout=TIMEOUT_S)
        agent = Agent(self.model_class(model, provider=OpenAIProvider(openai_client=client)))

        @agent.tool_plain
        def get_weather(city: str) -> str:
            """The weather in a city."""
            cities.append(city)
            return RESULT

        return agent

    def ask(self, model, text):
        cities = []
        return self.create(model, cities).run_stream_sync(text).get_output(), cities

    def test_a_blocking_reply_that_is_cut_off_is_an_error(self):
        with self.assertRaisesRegex(self.error, "cut off"):
            self.create(DROPPING, []).run_sync(question())


class ChatCompletions(PydanticAiCheck, unittest.TestCase):
    model_class = OpenAIChatModel


class Responses(PydanticAiCheck, unittest.TestCase):
    model_class = OpenAIResponsesModel
