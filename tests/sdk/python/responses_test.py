"""Creating, streaming, retrieving and deleting responses."""

import os
import time

import openai

from test_server import ENDLESS
from test_server import MODEL
from test_server import SILENT
from test_server import Check
from test_server import client


class Responses(Check):
    def test_a_blocking_response_is_complete_and_has_its_text(self):
        response = self.create(input="Hello!", metadata={"a": "b"})

        self.assertEqual(response.status, "completed")
        self.assertIn("demo model", response.output_text)
        self.assertEqual(response.metadata, {"a": "b"})
        self.assertGreater(response.usage.total_tokens, 0)

    def test_a_stream_and_a_later_retrieval_have_the_same_content(self):
        events = self.collect(self.create(input="Hello!", stream=True))

        whole = events[-1].response
        deltas = [it.delta for it in events if it.type == "response.output_text.delta"]
        self.assertEqual(events[-1].type, "response.completed")
        self.assertEqual("".join(deltas), whole.output_text)
        again = self.client.responses.retrieve(whole.id)
        self.assertEqual(again.output_text, whole.output_text)
        self.assertEqual(again.output[0].id, whole.output[0].id)

    def test_the_stream_helper_assembles_the_final_response(self):
        with self.client.responses.stream(model=MODEL, input="Hello!") as stream:
            text = "".join(it.delta for it in stream if it.type == "response.output_text.delta")
            final = stream.get_final_response()

        self.assertEqual(final.output_text, text)
        self.assertEqual(final.status, "completed")

    def test_a_response_continues_another_one(self):
        first = self.create(input="Hello!")

        second = self.create(input="And then?", previous_response_id=first.id)

        self.assertEqual(second.previous_response_id, first.id)
        # The demo model introduces itself once in a conversation.
        self.assertNotIn("demo model", second.output_text)

    def test_the_input_items_of_a_response_are_listed(self):
        response = self.create(input="Hello!")

        items = list(self.client.responses.input_items.list(response.id))

        self.assertEqual([it.content[0].text for it in items], ["Hello!"])

    def test_a_deleted_response_is_not_found(self):
        response = self.create(input="Hello!")

        self.client.responses.delete(response.id)

        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(response.id)

    def test_an_unstored_response_is_not_found(self):
        response = self.create(input="Hello!", store=False)

        self.assertEqual(response.status, "completed")
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(response.id)


class Background(Check):
    def test_a_background_response_is_polled_until_it_completes(self):
        response = self.create(input="Hello!", background=True)
        self.assertEqual(response.status, "queued")

        deadline = time.monotonic() + 60
        while response.status in ("queued", "in_progress") and time.monotonic() < deadline:
            time.sleep(0.2)
            response = self.client.responses.retrieve(response.id)

        self.assertEqual(response.status, "completed")
        self.assertTrue(response.output_text)

    def test_a_background_response_is_canceled(self):
        response = self.create(model=ENDLESS, input="Hello!", background=True)

        cancelled = self.client.responses.cancel(response.id)

        self.assertEqual(cancelled.status, "cancelled")
        again = self.client.responses.retrieve(response.id)
        self.assertEqual(again.status, "cancelled")

    def test_the_stream_of_a_background_response_is_replayed_from_any_event(self):
        live = self.collect(self.create(input="Hello!", background=True, stream=True))
        whole = live[-1].response

        rest = list(self.client.responses.retrieve(whole.id, stream=True, starting_after=3))

        self.assertEqual([it.to_dict() for it in rest], [it.to_dict() for it in live[4:]])


class Errors(Check):
    def test_an_unknown_model_is_not_found(self):
        with self.assertRaises(openai.NotFoundError) as raised:
            self.client.responses.create(model="nobody's", input="Hello!")

        self.assertEqual(raised.exception.code, "model_not_found")

    def test_an_invalid_parameter_is_a_bad_request_with_its_name(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.create(input="Hello!", temperature=5)

        self.assertEqual(raised.exception.param, "temperature")

    def test_a_wrong_key_is_an_authentication_error(self):
        with self.assertRaises(openai.AuthenticationError):
            client("trp_wrong").responses.create(model=MODEL, input="Hello!")

    def test_too_many_requests_get_a_rate_limit_error(self):
        limited = client(os.environ["TROUPE_LIMITED_KEY"])

        with self.assertRaises(openai.RateLimitError):
            for _ in range(1_000):
                try:
                    limited.responses.create(model=MODEL, input=[])
                except openai.BadRequestError:
                    pass

    def test_a_model_that_does_not_answer_gives_a_failed_response_and_no_error(self):
        response = self.client.responses.create(model=SILENT, input="Hello!")

        self.assertEqual(response.status, "failed")
        self.assertTrue(response.error.message)


class Models(Check):
    def test_the_models_are_listed_and_found_by_name(self):
        names = [it.id for it in self.client.models.list()]

        self.assertIn(MODEL, names)
        self.assertIn(SILENT, names)
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)
