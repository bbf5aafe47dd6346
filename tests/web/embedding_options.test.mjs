// The options of a provider for embeddings.
import assert from "node:assert/strict"
import test from "node:test"
import {
  invalidEmbeddingNumbers,
  readEmbeddingOptions,
  withEmbeddingOptions,
} from "../../static/js/models/providers/embedding_options.js"

const EMPTY = readEmbeddingOptions({})

test("an empty field is the default and 0 is a value", () => {
  const zero = { ...EMPTY, embedding_timeout_s: "0", embedding_max_retries: " 0 " }

  assert.deepEqual(withEmbeddingOptions({ reasoning: "low" }, EMPTY), { reasoning: "low" })
  assert.deepEqual(withEmbeddingOptions({}, zero), { embedding_timeout_s: 0, embedding_max_retries: 0 })
  assert.equal(readEmbeddingOptions({ embedding_timeout_s: 0 }).embedding_timeout_s, "0")
})

test("every option is stored and read again, and other settings are kept", () => {
  const settings = {
    temperature: 0.7,
    embedding_model: "m",
    embedding_dimensions: 256,
    embedding_timeout_s: 1.5,
    embedding_max_retries: 2,
    embedding_cache: false,
  }

  assert.deepEqual(withEmbeddingOptions(settings, readEmbeddingOptions(settings)), settings)
  assert.deepEqual(withEmbeddingOptions(settings, EMPTY), { temperature: 0.7 })
})

test("numbers out of range and what is no number are not allowed", () => {
  const invalid = (fields) => invalidEmbeddingNumbers({ ...EMPTY, ...fields })

  assert.deepEqual(invalid({}), [])
  assert.deepEqual(invalid({ embedding_dimensions: "0" }), ["embedding_dimensions"])
  assert.deepEqual(invalid({ embedding_dimensions: "1.5", embedding_timeout_s: "1.5" }), ["embedding_dimensions"])
  assert.deepEqual(invalid({ embedding_timeout_s: "601", embedding_max_retries: "soon" }), [
    "embedding_timeout_s",
    "embedding_max_retries",
  ])
})
