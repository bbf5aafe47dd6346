"""Embeddings of the model that is part of the server."""

import math

import openai

from test_server import Check
from test_server import client

LOCAL = "troupe-ngram-256"
TEXTS = ["The lighthouse keeper fears the sea.", "My dog is called Pixel.", "灯台守は海を恐れる。"]


class Embeddings(Check):
    def embed(self, **body):
        return self.client.embeddings.create(model=LOCAL, **body)

    def test_the_default_encoding_of_the_sdk_and_numbers_are_the_same_vectors(self):
        encoded = self.embed(input=TEXTS)
        numbers = self.embed(input=TEXTS, encoding_format="float")

        self.assertEqual([it.index for it in encoded.data], [0, 1, 2])
        self.assertEqual(encoded.model, LOCAL)
        self.assertGreater(encoded.usage.total_tokens, 0)
        for one, other in zip(encoded.data, numbers.data, strict=True):
            self.assertEqual(len(one.embedding), 256)
            for a, b in zip(one.embedding, other.embedding, strict=True):
                self.assertTrue(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9))

    def test_one_text_has_the_same_vector_as_in_a_list(self):
        alone = self.embed(input=TEXTS[1], encoding_format="float")
        among = self.embed(input=TEXTS, encoding_format="float")

        self.assertEqual(alone.data[0].embedding, among.data[1].embedding)

    def test_an_unknown_model_is_not_found(self):
        with self.assertRaises(openai.NotFoundError) as raised:
            self.client.embeddings.create(model="none", input="a")

        self.assertEqual(raised.exception.code, "model_not_found")

    def test_an_empty_text_is_a_bad_request(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.embed(input=["a", ""])

        self.assertEqual(raised.exception.param, "input[1]")

    def test_an_invalid_key_is_an_authentication_error(self):
        with self.assertRaises(openai.AuthenticationError):
            client("trp_none").embeddings.create(model=LOCAL, input="a")

    def test_the_model_is_listed_as_an_embedding_model(self):
        model = self.client.models.retrieve(LOCAL)

        self.assertEqual(model.to_dict()["kind"], "embedding")
        self.assertIn(LOCAL, [it.id for it in self.client.models.list()])
