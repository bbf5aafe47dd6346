// The AI SDK of Vercel, over Responses (@ai-sdk/openai) and Chat Completions (@ai-sdk/openai-compatible).
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import test from "node:test"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { APICallError, generateText, stepCountIs, streamText, tool } from "ai"
import { z } from "zod"

const SERVER = { baseURL: `${process.env.TROUPE_URL}/v1`, apiKey: process.env.TROUPE_KEY }
const PROVIDERS = {
  responses: createOpenAI(SERVER),
  "chat completions": createOpenAICompatible({ name: "troupe", ...SERVER }),
}
// The models of client_check.py.
const HEALTHY_MODELS = ["demo", "steady", "slow", "failing"]
const RESULT = "Rain in Oslo."

// A text after which every model calls the tool, and which no other test has sent.
const question = () => `What is the weather in Oslo? ${randomUUID()}\nCALL get_weather {"city": "Oslo"}`

function request(model) {
  const cities = []
  const get_weather = tool({
    description: "The weather in a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => {
      cities.push(city)
      return RESULT
    },
  })
  const options = { model, prompt: question(), tools: { get_weather }, stopWhen: stepCountIs(4), maxRetries: 0 }
  return { cities, options }
}

// Streams a reply, and throws the first error of the stream.
async function stream(options) {
  const errors = []
  const result = streamText({ ...options, onError: ({ error }) => errors.push(error) })
  await result.consumeStream()
  if (errors.length > 0) throw errors[0]
  return result.text
}

for (const [name, provider] of Object.entries(PROVIDERS)) {
  for (const id of HEALTHY_MODELS) {
    test(`${name}: ${id} calls a tool, and its result reaches the model`, async () => {
      const { cities, options } = request(provider(id))

      const text = await stream(options)

      assert.equal(cities.length, 1)
      assert.match(cities[0], /Oslo/)
      assert.ok(text.includes(RESULT), text)
    })
  }

  test(`${name}: a reply that is cut off is an error in the stream`, async () => {
    await assert.rejects(stream(request(provider("dropping")).options), (it) => /cut off/.test(JSON.stringify(it) + it))
  })

  test(`${name}: a rate limit of the provider is an error in the stream`, async () => {
    await assert.rejects(stream(request(provider("limited")).options), (it) => /rate limit/.test(JSON.stringify(it) + it))
  })

  test(`${name}: a blocking answer that failed is parsed, and is an error of the API`, async () => {
    const failed = generateText(request(provider("dropping")).options)

    await assert.rejects(failed, (it) => APICallError.isInstance(it) && /cut off/.test(it.message))
  })
}
