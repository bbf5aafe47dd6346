// What every check stands on: a client of the SDK. Without retries, so that each answer is the first.
import OpenAI from "openai"

export const MODEL = "demo"
// The provider never answers a call of this model.
export const SILENT = "silent"

export function client(apiKey = process.env.TROUPE_KEY) {
  return new OpenAI({ baseURL: `${process.env.TROUPE_URL}/v1`, apiKey, maxRetries: 0, timeout: 60_000 })
}

export function create(body, from = client()) {
  return from.responses.create({ model: MODEL, ...body })
}

export async function collect(stream) {
  const all = []
  for await (const it of stream) all.push(it)
  return all
}
