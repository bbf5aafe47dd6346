// Functions that the model calls and the client answers.
import assert from "node:assert/strict"
import test from "node:test"
import { collect, create } from "./test_server.mjs"

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const WEATHER = { type: "function", name: "get_weather", parameters, strict: false }

test("the output of a called function reaches the model", async () => {
  const asked = await create({ input: "What is the weather in Oslo?", tools: [WEATHER] })
  const call = asked.output.at(-1)
  assert.deepEqual([call.type, call.name], ["function_call", "get_weather"])
  assert.deepEqual(JSON.parse(call.arguments), { city: "Oslo" })

  const output = { type: "function_call_output", call_id: call.call_id, output: "Rain in Oslo." }
  const answer = await create({ previous_response_id: asked.id, tools: [WEATHER], input: [output] })

  assert.match(answer.output_text, /Rain in Oslo\./)
})

test("the arguments of a call are streamed", async () => {
  const events = await collect(
    await create({ input: "What is the weather in Oslo?", tools: [WEATHER], stream: true }),
  )

  const pieces = events.filter((it) => it.type === "response.function_call_arguments.delta")
  assert.equal(
    pieces.map((it) => it.delta).join(""),
    events.at(-1).response.output.at(-1).arguments,
  )
})
