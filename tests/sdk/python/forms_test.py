"""Answers that fit a schema."""

import json

import pydantic

from stage import MODEL
from stage import Check


class Place(pydantic.BaseModel):
    city: str
    is_wet: bool
    names: list[str]


class Forms(Check):
    def test_an_answer_is_parsed_into_what_was_asked_for(self):
        response = self.client.responses.parse(model=MODEL, input="I am in Oslo.", text_format=Place)

        self.assertIsInstance(response.output_parsed, Place)
        self.assertEqual(response.output_parsed.city, "Oslo")

    def test_an_answer_is_some_json_object(self):
        response = self.create(input="Hello!", text={"format": {"type": "json_object"}})

        self.assertIsInstance(json.loads(response.output_text), dict)
