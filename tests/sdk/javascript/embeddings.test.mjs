// Embeddings of the model that is part of the server.
import assert from "node:assert/strict"
import test from "node:test"
import OpenAI from "openai"
import { client } from "./test_server.mjs"

const LOCAL = "troupe-ngram-256"
const TEXTS = ["The lighthouse keeper fears the sea.", "My dog is called Pixel."]

function embed(body) {
  return client().embeddings.create({ model: LOCAL, ...body })
}

test("the default encoding of the SDK and numbers are the same vectors", async () => {
  const encoded = await embed({ input: TEXTS })
  const numbers = await embed({ input: TEXTS, encoding_format: "float" })

  assert.deepEqual(encoded.data.map((it) => it.index), [0, 1])
  assert.ok(encoded.usage.total_tokens > 0)
  for (const [at, { embedding }] of encoded.data.entries()) {
    assert.equal(embedding.length, 256)
    assert.deepEqual([...embedding].map(Math.fround), numbers.data[at].embedding.map(Math.fround))
  }
})

test("an unknown model is not found", async () => {
  const call = client().embeddings.create({ model: "none", input: "a" })

  await assert.rejects(call, (error) => error instanceof OpenAI.NotFoundError && error.code === "model_not_found")
})
