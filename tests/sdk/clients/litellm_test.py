"""LiteLLM, over Chat Completions and Responses."""

import json
import unittest

import litellm
import openai

from client_check import KEY
from client_check import RESULT
from client_check import TIMEOUT_S
from client_check import URL
from client_check import ClientCheck

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SERVER = {"api_base": URL, "api_key": KEY, "num_retries": 0, "max_retries": 0, "timeout": TIMEOUT_S}


class ChatCompletions(ClientCheck, unittest.TestCase):
    error = openai.APIError

    def ask(self, model, text):
        function = {"name": "get_weather", "parameters": PARAMETERS}
        options = {"model": f"openai/{model}", "tools": [{"type": "function", "function": function}], "stream": True}
        messages = [{"role": "user", "content": text}]
        asked = self.complete(messages, options)
        calls = asked.tool_calls or []
        messages.append(asked)
        for call in calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})
        answer = self.complete(messages, options).content
        return answer, [json.loads(it.function.arguments)["city"] for it in calls]

    def complete(self, messages, options):
        chunks = list(litellm.completion(messages=messages, **options, **SERVER))
        return litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message


class Responses(ClientCheck, unittest.TestCase):
    error = RuntimeError

    def ask(self, model, text):
        tool = {"type": "function", "name": "get_weather", "parameters": PARAMETERS}
        options = {"model": f"openai/{model}", "tools": [tool], "stream": True}
        asked = self.respond(options, input=text)
        calls = [it for it in asked.output if it.type == "function_call"]
        outputs = [
            {"type": "function_call_output", "call_id": it.call_id, "output": RESULT} for it in calls
        ]
        answer = self.respond(options, input=outputs, previous_response_id=asked.id)
        return answer.output_text, [json.loads(it.arguments)["city"] for it in calls]

    def respond(self, options, **body):
        response = list(litellm.responses(**body, **options, **SERVER))[-1].response
        if response.status != "completed":
            raise RuntimeError(response.error["message"])
        return response
