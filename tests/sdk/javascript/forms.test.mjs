// Answers that fit a schema.
import assert from "node:assert/strict"
import test from "node:test"
import { MODEL, client } from "./stage.mjs"

test("an answer is parsed into what was asked for", async () => {
  const city = { type: "string" }
  const schema = { type: "object", properties: { city }, required: ["city"], additionalProperties: false }
  const format = { type: "json_schema", name: "place", schema, strict: true }

  const response = await client().responses.parse({ model: MODEL, input: "I am in Oslo.", text: { format } })

  assert.deepEqual(response.output_parsed, { city: "Oslo" })
})
