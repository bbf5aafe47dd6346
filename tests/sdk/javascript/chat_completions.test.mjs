// Chat completions: blocking, streamed, and with a tool.
import assert from "node:assert/strict"
import test from "node:test"
import { MODEL, client, collect } from "./test_server.mjs"

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const WEATHER = { type: "function", function: { name: "get_weather", parameters } }
const QUESTION = { role: "user", content: "What is the weather in Oslo?" }

const complete = (body) =>
  client().chat.completions.create({ model: MODEL, messages: [{ role: "user", content: "Hello!" }], ...body })

test("a blocking completion has its text", async () => {
  const completion = await complete({})

  assert.match(completion.choices[0].message.content, /demo model/)
  assert.equal(completion.choices[0].finish_reason, "stop")
})

test("a stream has the text and, if requested, the usage", async () => {
  const chunks = await collect(await complete({ stream: true, stream_options: { include_usage: true } }))

  assert.equal(chunks[0].choices[0].delta.role, "assistant")
  assert.match(chunks.map((it) => it.choices[0]?.delta.content ?? "").join(""), /demo model/)
  assert.equal(chunks.at(-2).choices[0].finish_reason, "stop")
  assert.ok(chunks.at(-1).usage.total_tokens > 0)
})

test("the output of a called function reaches the model", async () => {
  const asked = await complete({ messages: [QUESTION], tools: [WEATHER] })
  const { message, finish_reason } = asked.choices[0]
  assert.equal(finish_reason, "tool_calls")
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { city: "Oslo" })

  const output = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "Rain in Oslo." }
  const answer = await complete({ messages: [QUESTION, message, output], tools: [WEATHER] })

  assert.match(answer.choices[0].message.content, /Rain in Oslo\./)
})

test("the stream helper assembles a call", async () => {
  const stream = client().chat.completions.stream({ model: MODEL, messages: [QUESTION], tools: [WEATHER] })

  const final = await stream.finalChatCompletion()

  const call = final.choices[0].message.tool_calls[0]
  assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["get_weather", { city: "Oslo" }])
})
