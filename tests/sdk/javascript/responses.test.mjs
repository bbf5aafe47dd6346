// Creating, streaming, retrieving and deleting responses.
import assert from "node:assert/strict"
import test from "node:test"
import OpenAI from "openai"
import { ENDLESS, MODEL, SILENT, client, collect, create } from "./test_server.mjs"

test("a blocking response is complete and has its text", async () => {
  const response = await create({ input: "Hello!", metadata: { a: "b" } })

  assert.equal(response.status, "completed")
  assert.match(response.output_text, /demo model/)
  assert.deepEqual(response.metadata, { a: "b" })
})

test("a stream and a later retrieval have the same content", async () => {
  const events = await collect(await create({ input: "Hello!", stream: true }))

  const whole = events.at(-1).response
  const deltas = events.filter((it) => it.type === "response.output_text.delta").map((it) => it.delta)
  const again = await client().responses.retrieve(whole.id)
  assert.deepEqual(
    events.map((it) => it.sequence_number),
    events.map((_, at) => at),
  )
  assert.equal(events.at(-1).type, "response.completed")
  assert.equal(deltas.join(""), again.output_text)
  assert.deepEqual(again.output, whole.output)
})

test("the stream helper assembles the final response", async () => {
  const stream = client().responses.stream({ model: MODEL, input: "Hello!" })
  let text = ""
  stream.on("response.output_text.delta", (event) => (text += event.delta))

  const final = await stream.finalResponse()

  assert.equal(final.status, "completed")
  assert.equal(final.output_text, text)
})

test("a response continues another one", async () => {
  const first = await create({ input: "Hello!" })

  const second = await create({ input: "And then?", previous_response_id: first.id })

  assert.equal(second.previous_response_id, first.id)
  // The demo model introduces itself once in a conversation.
  assert.doesNotMatch(second.output_text, /demo model/)
})

test("the input items of a response are listed", async () => {
  const response = await create({ input: "Hello!" })

  const items = await collect(client().responses.inputItems.list(response.id))

  assert.deepEqual(
    items.map((it) => it.content[0].text),
    ["Hello!"],
  )
})

test("a deleted or unstored response is not found", async () => {
  const deleted = await create({ input: "Hello!" })
  await client().responses.delete(deleted.id)
  const unstored = await create({ input: "Hello!", store: false })

  for (const { id } of [deleted, unstored])
    await assert.rejects(client().responses.retrieve(id), OpenAI.NotFoundError)
})

test("a background response is polled until it completes", async () => {
  let response = await create({ input: "Hello!", background: true })
  assert.equal(response.status, "queued")

  while (["queued", "in_progress"].includes(response.status)) {
    await new Promise((resolve) => setTimeout(resolve, 200))
    response = await client().responses.retrieve(response.id)
  }

  assert.equal(response.status, "completed")
})

test("a background response is canceled", async () => {
  const response = await create({ model: ENDLESS, input: "Hello!", background: true })

  const cancelled = await client().responses.cancel(response.id)

  assert.equal(cancelled.status, "cancelled")
})

test("a conversation collects the items of its responses", async () => {
  const conversation = await client().conversations.create({ metadata: { a: "b" } })

  const response = await create({ input: "Hello!", conversation: conversation.id })

  const items = await collect(client().conversations.items.list(conversation.id, { order: "asc" }))
  assert.deepEqual(
    items.map((it) => it.role),
    ["user", "assistant"],
  )
  assert.equal(items[1].content[0].text, response.output_text)
})

test("the models are listed and found by name", async () => {
  const names = (await collect(client().models.list())).map((it) => it.id)

  assert.ok(names.includes(MODEL) && names.includes(SILENT), names)
  assert.equal((await client().models.retrieve(MODEL)).id, MODEL)
})

test("errors are raised as the classes of the SDK", async () => {
  const unknown = client().responses.create({ model: "nobody's", input: "Hello!" })
  await assert.rejects(unknown, { constructor: OpenAI.NotFoundError, code: "model_not_found" })
  const wrong = create({ input: "Hello!", temperature: 5 })
  await assert.rejects(wrong, { constructor: OpenAI.BadRequestError, param: "temperature" })
  const keyless = create({ input: "Hello!" }, client("trp_wrong"))
  await assert.rejects(keyless, OpenAI.AuthenticationError)
})

test("too many requests get a rate limit error", async () => {
  const limited = client(process.env.TROUPE_LIMITED_KEY)
  let error
  for (let n = 0; n < 1_000 && !(error instanceof OpenAI.RateLimitError); n += 1)
    error = await create({ input: [] }, limited).catch((it) => it)

  assert.ok(error instanceof OpenAI.RateLimitError, String(error))
})

test("a model that does not answer gives a failed response and no error", async () => {
  const response = await client().responses.create({ model: SILENT, input: "Hello!" })

  assert.equal(response.status, "failed")
  assert.ok(response.error.message)
})
