"""The tests that every client passes, and the models and messages that they use."""

import os
import uuid

URL = os.environ["TROUPE_URL"] + "/v1"
KEY = os.environ["TROUPE_KEY"]

# The demo model of the server, and models of tests/sdk/model_server.py: one without faults, one that
# begins after seconds, and one that answers 500 to the first request of each text.
HEALTHY_MODELS = ["demo", "steady", "slow", "failing"]
# The connection is closed within each of its replies.
DROPPING = "dropping"
# It answers 429 to every request.
LIMITED = "limited"

RESULT = "Rain in Oslo."
TIMEOUT_S = 60


def question():
    """Returns a text after which every model calls the tool, and which no other test has sent."""
    return f'What is the weather in Oslo? {uuid.uuid4()}\nCALL get_weather {{"city": "Oslo"}}'


class ClientCheck:
    """A client passes if its `ask` sends a text, streamed, and answers the calls of the tool
    `get_weather` with `RESULT`. It returns the text of the last reply and the cities of the calls,
    or raises `error`.
    """

    error = Exception

    def ask(self, model, text):
        raise NotImplementedError

    def test_a_tool_is_called_and_its_result_reaches_the_model(self):
        for model in HEALTHY_MODELS:
            with self.subTest(model):
                answer, cities = self.ask(model, question())

                self.assertEqual(len(cities), 1, cities)
                self.assertIn("Oslo", cities[0])
                self.assertIn(RESULT, answer)

    def test_a_reply_that_is_cut_off_is_an_error(self):
        with self.assertRaisesRegex(self.error, "cut off"):
            self.ask(DROPPING, question())

    def test_a_rate_limit_of_the_provider_is_an_error(self):
        with self.assertRaisesRegex(self.error, "(?i)rate limit"):
            self.ask(LIMITED, question())
