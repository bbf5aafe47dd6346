"""Functions that the model calls and the client answers."""

import json

import openai

from test_server import Check


def function(name, *properties):
    return {
        "type": "function",
        "name": name,
        "parameters": {
            "type": "object",
            "properties": {it: {"type": "string"} for it in properties},
            "required": list(properties),
        },
    }


def tool_output(call, text):
    return {"type": "function_call_output", "call_id": call.call_id, "output": text}


WEATHER = function("get_weather", "city")
TIDES = function("get_tides", "city")


class Functions(Check):
    def test_the_output_of_a_called_function_reaches_the_model(self):
        asked = self.create(input="What is the weather in Oslo?", tools=[WEATHER])
        call = asked.output[-1]
        self.assertEqual((asked.status, call.type, call.name), ("completed", "function_call", "get_weather"))
        self.assertEqual(json.loads(call.arguments), {"city": "Oslo"})

        answer = self.create(
            previous_response_id=asked.id, tools=[WEATHER], input=[tool_output(call, "Rain in Oslo.")]
        )

        self.assertIn("Rain in Oslo.", answer.output_text)

    def test_a_function_is_called_without_anything_stored(self):
        question = {"type": "message", "role": "user", "content": "What is the weather in Oslo?"}
        asked = self.create(input=[question], tools=[WEATHER], store=False)
        call = asked.output[-1]

        items = [question, call.to_dict(), tool_output(call, "Rain in Oslo.")]
        answer = self.create(input=items, tools=[WEATHER], store=False)

        self.assertIn("Rain in Oslo.", answer.output_text)

    def test_the_arguments_of_a_call_are_streamed(self):
        stream = self.create(input="What is the weather in Oslo?", tools=[WEATHER], stream=True)
        events = self.collect(stream)

        pieces = [it.delta for it in events if it.type == "response.function_call_arguments.delta"]
        done = [it for it in events if it.type == "response.function_call_arguments.done"]
        call = events[-1].response.output[-1]
        self.assertEqual("".join(pieces), done[0].arguments)
        self.assertEqual(done[0].arguments, call.arguments)

    def test_several_calls_are_answered_together(self):
        asked = self.create(input="Weather and tides in Brest?", tools=[WEATHER, TIDES])
        calls = [it for it in asked.output if it.type == "function_call"]
        self.assertEqual([it.name for it in calls], ["get_weather", "get_tides"])

        with self.assertRaises(openai.BadRequestError) as raised:
            self.create(previous_response_id=asked.id, input=[tool_output(calls[0], "Rain.")])
        outputs = [tool_output(it, f"{it.name} knows.") for it in reversed(calls)]
        answer = self.create(previous_response_id=asked.id, input=outputs, tools=[WEATHER, TIDES])

        self.assertEqual(raised.exception.code, "missing_tool_output")
        self.assertIn("get_weather knows.", answer.output_text)
        self.assertIn("get_tides knows.", answer.output_text)

    def test_a_call_can_be_required_and_forbidden(self):
        required = self.create(input="Hello!", tools=[WEATHER], tool_choice="required")
        named = {"type": "function", "name": "get_tides"}
        chosen = self.create(input="Hello!", tools=[WEATHER, TIDES], tool_choice=named)
        forbidden = self.create(input="The weather?", tools=[WEATHER], tool_choice="none")

        self.assertEqual(required.output[-1].name, "get_weather")
        self.assertEqual(chosen.output[-1].name, "get_tides")
        self.assertEqual([it.type for it in forbidden.output], ["message"])
