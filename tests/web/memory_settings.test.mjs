// The memory settings of a space.
import assert from "node:assert/strict"
import test from "node:test"
import MemoryActions from "../../static/js/actions/memories.js"
import { numberOf, readMemorySettings, withMemorySettings } from "../../static/js/models/memories/memory_settings.js"

test("missing and malformed rules are the defaults", () => {
  const rules = readMemorySettings({ memory: { top_k: 3, learn: false, recall: null, threshold: "0.9", model: {} } })

  const usual = { enabled: true, recall: true, threshold: 0.6, token_budget: 512, max_memories: 100000, model: null, embedding: null }
  assert.deepEqual(rules, { ...usual, learn: false, top_k: 3 })
  assert.equal(readMemorySettings(undefined).enabled, true)
})

test("only values that differ from the defaults are stored, next to unknown ones and other settings", () => {
  const settings = { scenario_override: "sea", memory: { top_k: 3, future: { model: "m" } } }

  const written = withMemorySettings(settings, { ...readMemorySettings(settings), top_k: 5, threshold: 0.4 })

  assert.deepEqual(written, { scenario_override: "sea", memory: { future: { model: "m" }, threshold: 0.4 } })
  assert.deepEqual(withMemorySettings({ a: 1, memory: { learn: false } }, readMemorySettings({})), { a: 1 })
})

test("an embedding model is stored until the default is chosen again", () => {
  const embedding = { provider_id: 3, model: "m" }
  const usual = readMemorySettings({})

  const written = withMemorySettings({}, { ...usual, embedding })

  assert.deepEqual(written, { memory: { embedding } })
  assert.deepEqual(readMemorySettings(written).embedding, embedding)
  assert.deepEqual(withMemorySettings(written, usual), {})
  assert.equal(readMemorySettings({ memory: { embedding: { provider_id: 3 } } }).embedding, null)
})

test("a number outside of its range is not allowed, an empty field is the default", () => {
  assert.deepEqual(
    ["", "1", "20", "0", "21", "2.5", "x"].map((text) => numberOf("top_k", text)),
    [5, 1, 20, null, null, null, null],
  )
  assert.deepEqual(
    [" ", "0", "0.55", "1", "1.1", "-0.1"].map((text) => numberOf("threshold", text)),
    [0.6, 0, 0.55, 1, null, null],
  )
  assert.deepEqual([numberOf("token_budget", "4096"), numberOf("token_budget", "4097")], [4096, null])
})

test("a model is stored with its provider, and the default model is not stored", () => {
  const stored = (model) => withMemorySettings({}, { ...readMemorySettings({}), model })

  assert.deepEqual(stored({ provider_id: 3, model: "small" }), { memory: { model: { provider_id: 3, model: "small" } } })
  assert.deepEqual(stored(null), {})
  for (const model of [null, " ", undefined]) {
    const read = readMemorySettings({ memory: { model: { provider_id: 3, model } } })
    assert.deepEqual(read.model, { provider_id: 3 })
  }
})

test("changed settings are sent with the version that the user has seen", async () => {
  const sent = []
  const stored = []
  const api = {
    async changeSpace(id, body) {
      sent.push([id, body])
      return { id, ...body }
    },
  }
  const store = { putSpace: (space) => stored.push(space.id) }
  const space = { id: 3, settings: { tools: { a: 1 } }, settings_version: 4 }

  await new MemoryActions({ api, store }).changeSettings(space, { ...readMemorySettings({}), enabled: false })

  assert.deepEqual(sent, [[3, { settings: { tools: { a: 1 }, memory: { enabled: false } }, settings_version: 4 }]])
  assert.deepEqual(stored, [3])
})
