// The SDK client of every test, without retries, so that the first response counts.
import OpenAI from "openai"

export const MODEL = "demo"
// The provider never responds to a request for this model.
export const SILENT = "silent"
// This model refuses every request.
export const REFUSING = "refusing"
// This model writes until its response is canceled.
export const ENDLESS = "endless"

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
