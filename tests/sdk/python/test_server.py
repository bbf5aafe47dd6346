"""The SDK client of every test, and validation against the specification if its file is available."""

import json
import os
import pathlib
import unittest

import jsonschema
import openai

MODEL = "demo"
# The provider never responds to a request for this model.
SILENT = "silent"
# This model refuses every request.
REFUSING = "refusing"
# This model writes until its response is canceled.
ENDLESS = "endless"

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_PLACES = [_ROOT / above / "shared/data/openresponses-openapi.json" for above in ("..", "../..")]


def client(key=None, **options):
    """Returns a client of the server under test, without retries, so that the first response counts."""
    return openai.OpenAI(
        base_url=os.environ["TROUPE_URL"] + "/v1",
        api_key=key or os.environ["TROUPE_KEY"],
        max_retries=0,
        timeout=60,
        **options,
    )


class Check(unittest.TestCase):
    """Base class of the tests, with a client."""

    def setUp(self):
        self.client = client()

    def create(self, model=MODEL, **body):
        return self.client.responses.create(model=model, **body)

    def collect(self, stream):
        """Returns all events of a stream, each validated against the specification."""
        events = list(stream)
        for event in events:
            validate(event.to_dict(mode="json"))
        self.assertEqual([it.sequence_number for it in events], list(range(len(events))))
        return events


def _specification():
    for place in _PLACES:
        if place.exists():
            return json.loads(place.read_text())
    return None


def _validators(document):
    schemas = document["components"]["schemas"] if document else {}
    validators = {}
    for name, schema in schemas.items():
        kind = schema.get("properties", {}).get("type", {})
        if name.endswith("StreamingEvent"):
            whole = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
            for word in kind.get("enum", []) or [kind.get("const")]:
                validators[word] = jsonschema.Draft202012Validator(whole)
    return validators


_VALIDATORS = _validators(_specification())


def validate(event):
    """Fails if the event is invalid; accepts every event without the specification."""
    if not _VALIDATORS:
        return
    validator = _VALIDATORS.get(event["type"])
    assert validator, f"not in the specification: {event['type']}"
    errors = [it.message for it in validator.iter_errors(event)]
    assert not errors, f"{event['type']}: {errors[:3]} in {event}"
