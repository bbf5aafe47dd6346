"""LlamaIndex, over Chat Completions and Responses."""

import unittest

import openai
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike

from client_check import KEY
from client_check import RESULT
from client_check import TIMEOUT_S
from client_check import URL
from client_check import ClientCheck

SERVER = {"api_base": URL, "api_key": KEY, "max_retries": 0, "timeout": TIMEOUT_S}


def get_weather(city: str) -> str:
    """The weather in a city."""
    return RESULT


class LlamaIndexCheck(ClientCheck):
    def ask(self, model, text):
        llm = self.create(model)
        tools = [FunctionTool.from_defaults(get_weather)]
        messages = [ChatMessage(role="user", content=text)]
        asked = last(llm.stream_chat_with_tools(tools, chat_history=messages))
        messages.append(asked.message)
        calls = llm.get_tool_calls_from_response(asked, error_on_no_tool_call=False)
        for call in calls:
            options = {"tool_call_id": call.tool_id}
            messages.append(ChatMessage(role="tool", content=RESULT, additional_kwargs=options))
        answer = last(llm.stream_chat_with_tools(tools, chat_history=messages))
        return answer.message.content, [it.tool_kwargs["city"] for it in calls]


def last(stream):
    """Returns the last part of a stream. LlamaIndex has no exception for a failed response."""
    part = list(stream)[-1]
    if getattr(part.raw, "type", None) == "response.failed":
        raise RuntimeError(part.raw.response.error.message)
    return part


class ChatCompletions(LlamaIndexCheck, unittest.TestCase):
    error = openai.APIError

    def create(self, model):
        return OpenAILike(model=model, is_chat_model=True, is_function_calling_model=True, **SERVER)


class Responses(LlamaIndexCheck, unittest.TestCase):
    error = RuntimeError

    def create(self, model):
        return OpenAIResponses(model=model, context_window=8000, **SERVER)
