"""Structured outputs and refusals."""

import json

import pydantic

from test_server import MODEL
from test_server import REFUSING
from test_server import Check


class Place(pydantic.BaseModel):
    city: str
    is_wet: bool
    names: list[str]


class Forms(Check):
    def test_an_answer_is_parsed_into_the_requested_schema(self):
        response = self.client.responses.parse(model=MODEL, input="I am in Oslo.", text_format=Place)

        self.assertIsInstance(response.output_parsed, Place)
        self.assertEqual(response.output_parsed.city, "Oslo")

    def test_an_answer_in_json_mode_is_an_object(self):
        response = self.create(input="Hello!", text={"format": {"type": "json_object"}})

        self.assertIsInstance(json.loads(response.output_text), dict)

    def test_a_refusal_has_its_own_type_and_is_parsed_into_none(self):
        response = self.client.responses.parse(model=REFUSING, input="Hello!", text_format=Place)

        self.assertEqual([it.type for it in response.output[0].content], ["refusal"])
        self.assertIsNone(response.output_parsed)
        self.assertEqual(response.output_text, "")

    def test_a_refusal_is_streamed_and_collected(self):
        events = self.collect(self.create(model=REFUSING, input="Hello!", stream=True))
        with self.client.responses.stream(model=REFUSING, input="Hello!") as stream:
            final = stream.get_final_response()

        deltas = [it.delta for it in events if it.type == "response.refusal.delta"]
        self.assertGreater(len(deltas), 1)
        self.assertEqual(final.output[0].content[0].refusal, "".join(deltas))
