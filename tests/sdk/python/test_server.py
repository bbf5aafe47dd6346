"""What every check stands on: a client of the SDK, and the specification where its file is at hand."""

import json
import os
import pathlib
import unittest

import jsonschema
import openai

MODEL = "demo"
# The provider never answers a call of this model.
SILENT = "silent"

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_PLACES = [_ROOT / above / "shared/data/openresponses-openapi.json" for above in ("..", "../..")]


def client(key=None, **options):
    """A client of the server under test; without retries, so that each answer is the first."""
    return openai.OpenAI(
        base_url=os.environ["TROUPE_URL"] + "/v1",
        api_key=key or os.environ["TROUPE_KEY"],
        max_retries=0,
        timeout=60,
        **options,
    )


class Check(unittest.TestCase):
    """Checks whose names are the rules."""

    def setUp(self):
        self.client = client()

    def create(self, **body):
        return self.client.responses.create(model=MODEL, **body)

    def collect(self, stream):
        """All events of a stream, each held to the specification."""
        events = list(stream)
        for event in events:
            hold(event.to_dict(mode="json"))
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


def hold(event):
    """Panics with what does not fit; without the file of the specification everything does."""
    if not _VALIDATORS:
        return
    validator = _VALIDATORS.get(event["type"])
    assert validator, f"no such event: {event['type']}"
    faults = [it.message for it in validator.iter_errors(event)]
    assert not faults, f"{event['type']}: {faults[:3]} in {event}"
