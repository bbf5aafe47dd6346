"""Chat completions: blocking, streamed, with a tool, and in a schema."""

import json

import openai
import pydantic

from test_server import MODEL
from test_server import REFUSING
from test_server import Check

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


class Place(pydantic.BaseModel):
    city: str


class ChatCompletions(Check):
    def complete(self, text="Hello!", **body):
        messages = [{"role": "user", "content": text}]
        return self.client.chat.completions.create(**{"model": MODEL, "messages": messages, **body})

    def test_a_blocking_completion_has_its_text_and_usage(self):
        completion = self.complete()

        choice = completion.choices[0]
        self.assertIn("demo model", choice.message.content)
        self.assertEqual(choice.finish_reason, "stop")
        self.assertGreater(completion.usage.total_tokens, 0)

    def test_a_stream_begins_with_the_role_and_ends_with_the_usage(self):
        chunks = list(self.complete(stream=True, stream_options={"include_usage": True}))

        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        text = "".join(it.choices[0].delta.content or "" for it in chunks if it.choices)
        self.assertIn("demo model", text)
        self.assertEqual(chunks[-2].choices[0].finish_reason, "stop")
        self.assertEqual((chunks[-1].choices, chunks[-1].usage.prompt_tokens > 0), ([], True))

    def test_the_stream_helper_collects_the_completion(self):
        messages = [{"role": "user", "content": "Hello!"}]
        with self.client.chat.completions.stream(model=MODEL, messages=messages) as stream:
            texts = [it.delta for it in stream if it.type == "content.delta"]
            final = stream.get_final_completion()

        self.assertGreater(len(texts), 1)
        self.assertEqual(final.choices[0].message.content, "".join(texts))

    def test_the_output_of_a_called_function_reaches_the_model(self):
        question = {"role": "user", "content": "What is the weather in Oslo?"}
        asked = self.complete(messages=[question], tools=[WEATHER])
        message = asked.choices[0].message
        call = message.tool_calls[0]
        self.assertEqual((asked.choices[0].finish_reason, call.function.name), ("tool_calls", "get_weather"))
        self.assertEqual(json.loads(call.function.arguments), {"city": "Oslo"})

        output = {"role": "tool", "tool_call_id": call.id, "content": "Rain in Oslo."}
        answer = self.complete(messages=[question, message, output], tools=[WEATHER])

        self.assertIn("Rain in Oslo.", answer.choices[0].message.content)

    def test_a_call_is_streamed_and_collected(self):
        messages = [{"role": "user", "content": "What is the weather in Oslo?"}]
        with self.client.chat.completions.stream(model=MODEL, messages=messages, tools=[WEATHER]) as stream:
            final = stream.get_final_completion()

        call = final.choices[0].message.tool_calls[0]
        self.assertEqual(json.loads(call.function.arguments), {"city": "Oslo"})

    def test_an_answer_is_parsed_into_the_requested_schema(self):
        messages = [{"role": "user", "content": "I am in Oslo."}]

        completion = self.client.chat.completions.parse(
            model=MODEL, messages=messages, response_format=Place
        )

        self.assertEqual(completion.choices[0].message.parsed, Place(city="Oslo"))

    def test_a_refusal_is_not_content(self):
        message = self.complete(model=REFUSING).choices[0].message

        self.assertEqual((message.content, message.refusal), (None, "I cannot help with that."))

    def test_a_missing_output_raises_an_error_that_names_the_call(self):
        call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        messages = [{"role": "assistant", "tool_calls": [call]}, {"role": "user", "content": "Hello!"}]

        with self.assertRaises(openai.BadRequestError) as raised:
            self.complete(messages=messages)

        self.assertEqual(raised.exception.code, "missing_tool_output")
        self.assertIn("call_1", raised.exception.message)
