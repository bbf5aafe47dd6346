"""The OpenAI Agents SDK, over Chat Completions, Responses and the WebSocket of Responses."""

import asyncio
import unittest

import agents
import openai
from agents.models.openai_responses import OpenAIResponsesWSModel

from client_check import DROPPING
from client_check import KEY
from client_check import RESULT
from client_check import TIMEOUT_S
from client_check import URL
from client_check import ClientCheck
from client_check import question

agents.set_tracing_disabled(True)


class AgentsCheck(ClientCheck):
    """Asks an agent whose model is of the class `model_class`."""

    model_class = None
    error = (openai.APIError, agents.AgentsException, RuntimeError)

    def ask(self, model, text):
        return asyncio.run(self.run_agent(model, text))

    async def run_agent(self, model, text, is_streamed=True):
        cities = []

        @agents.function_tool
        def get_weather(city: str) -> str:
            """The weather in a city."""
            cities.append(city)
            return RESULT

        async with openai.AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0, timeout=TIMEOUT_S) as client:
            agent = agents.Agent(
                name="Weather", model=self.model_class(model, openai_client=client), tools=[get_weather]
            )
            if not is_streamed:
                return (await agents.Runner.run(agent, text)).final_output, cities
            run = agents.Runner.run_streamed(agent, text, max_turns=4)
            async for _ in run.stream_events():
                pass
            return run.final_output, cities

    def test_a_blocking_reply_that_is_cut_off_is_an_error(self):
        with self.assertRaisesRegex(self.error, "cut off"):
            asyncio.run(self.run_agent(DROPPING, question(), is_streamed=False))


class ChatCompletions(AgentsCheck, unittest.TestCase):
    model_class = agents.OpenAIChatCompletionsModel


class Responses(AgentsCheck, unittest.TestCase):
    model_class = agents.OpenAIResponsesModel


class ResponsesOverWebSocket(AgentsCheck, unittest.TestCase):
    model_class = OpenAIResponsesWSModel
