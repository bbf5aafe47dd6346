// Structured outputs and refusals.
import assert from "node:assert/strict"
import test from "node:test"
import { MODEL, REFUSING, client } from "./test_server.mjs"

test("an answer is parsed into the requested schema", async () => {
  const city = { type: "string" }
  const schema = { type: "object", properties: { city }, required: ["city"], additionalProperties: false }
  const format = { type: "json_schema", name: "place", schema, strict: true }

  const response = await client().responses.parse({ model: MODEL, input: "I am in Oslo.", text: { format } })

  assert.deepEqual(response.output_parsed, { city: "Oslo" })
})

test("a refusal is streamed, collected, and parsed into null", async () => {
  const stream = client().responses.stream({ model: REFUSING, input: "Hello!" })
  let refusal = ""
  stream.on("response.refusal.delta", (event) => (refusal += event.delta))
  const format = { type: "json_schema", name: "place", schema: { type: "object" } }

  const final = await stream.finalResponse()
  const parsed = await client().responses.parse({ model: REFUSING, input: "Hello!", text: { format } })

  assert.deepEqual(final.output[0].content, [{ type: "refusal", refusal, parsed: null }])
  assert.notEqual(refusal, "")
  assert.equal(parsed.output_parsed, null)
  assert.equal(parsed.output_text, "")
})
