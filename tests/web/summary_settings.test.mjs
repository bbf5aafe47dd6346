// The rules for summaries of a space.
import assert from "node:assert/strict"
import test from "node:test"
import MemoryActions from "../../static/js/actions/memories.js"
import SummaryActions from "../../static/js/actions/summaries.js"
import { readMemorySettings } from "../../static/js/models/memories/memory_settings.js"
import {
  numberOf,
  readSummarySettings,
  withSummarySettings,
} from "../../static/js/models/summaries/summary_settings.js"

const USUAL = { enabled: true, model: null, chunk_messages: 30, max_tokens: 600 }

// Returns a space store and an API that returns what it was sent.
function tools() {
  const stored = []
  const api = { changeSpace: async (id, body) => ({ id, ...body }) }
  return { stored, parts: { api, store: { putSpace: (space) => stored.push(space) } } }
}

test("missing and malformed rules for summaries are the defaults", () => {
  const read = (summaries) => readSummarySettings({ memory: { summaries } })

  assert.deepEqual(read({ chunk_messages: 20, max_tokens: "9", enabled: null, model: {} }), {
    ...USUAL,
    chunk_messages: 20,
  })
  assert.deepEqual([readSummarySettings(undefined), read(null)], [USUAL, USUAL])
  assert.deepEqual(read({ model: { provider_id: 2, model: "m" } }).model, { provider_id: 2, model: "m" })
  assert.deepEqual([read({ model: null }).model, read({ model: { model: "m" } }).model], [null, null])
})

test("only rules that differ from the defaults are stored, next to unknown ones and the memory settings", () => {
  const model = { provider_id: 1, model: "m" }
  const settings = { a: 1, memory: { top_k: 3, summaries: { later: 1, model, max_tokens: 900 } } }

  assert.deepEqual(withSummarySettings(settings, { ...USUAL, enabled: false, model }), {
    a: 1,
    memory: { top_k: 3, summaries: { later: 1, enabled: false, model } },
  })
  assert.deepEqual(withSummarySettings({ memory: { summaries: { model } } }, USUAL), {})
  assert.deepEqual(withSummarySettings({ a: 1, memory: { summaries: { max_tokens: 900 } } }, USUAL), { a: 1 })
})

test("a number for summaries outside of its range is not allowed, an empty field is the default", () => {
  assert.deepEqual(
    ["", "10", "100", "9", "101", "20.5", "x"].map((text) => numberOf("chunk_messages", text)),
    [30, 10, 100, null, null, null, null],
  )
  assert.deepEqual([numberOf("max_tokens", "100"), numberOf("max_tokens", "2001")], [100, null])
})

test("the rules for memories and those for summaries do not overwrite each other", async () => {
  const { stored, parts } = tools()
  const space = { id: 3, settings: { memory: { summaries: { enabled: false } } }, settings_version: 4 }

  await new MemoryActions(parts).changeSettings(space, { ...readMemorySettings({}), top_k: 9 })
  await new SummaryActions(parts).changeSettings(stored[0], { ...USUAL, enabled: false, max_tokens: 700 })

  assert.deepEqual(stored[1], {
    id: 3,
    settings: { memory: { top_k: 9, summaries: { enabled: false, max_tokens: 700 } } },
    settings_version: 4,
  })
})
