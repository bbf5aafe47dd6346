// Presets: the editor, the layers, and the detection of files.
import assert from "node:assert/strict"
import { test } from "node:test"
import PresetDocument, { decided, hasText, placeFrom, placeOf } from "../../static/js/models/presets/preset_document.js"
import { isPreset } from "../../static/js/models/presets/preset_file.js"

const DEFAULTS = {
  prompt_order: [
    { id: "main", label: "Main prompt", slot: "main", text: "Play.", enabled: true },
    { id: "description", label: "Description", slot: "description", enabled: true },
    { id: "history", label: "History", slot: "history", enabled: true },
  ],
  new_chat_prompt: "[Start]",
  temperature: null,
}

const ids = (draft) => draft.entries.map(({ id }) => id)

test("a value without a setting is not stored", () => {
  const draft = new PresetDocument({}, DEFAULTS)

  assert.equal(draft.value("new_chat_prompt"), "[Start]")
  assert.equal(draft.value("temperature"), null)
  assert.deepEqual(draft.json, {})
  assert.equal(draft.isChanged, false)
})

test("a text that equals the default is not stored", () => {
  const draft = new PresetDocument({ new_chat_prompt: "[Go]" }, DEFAULTS)

  draft.setText("new_chat_prompt", "[Start]")
  assert.deepEqual(draft.json, {})

  draft.setText("new_chat_prompt", "")
  assert.deepEqual(draft.json, { new_chat_prompt: "" })
})

test("an entry moves, but not beyond the ends", () => {
  const draft = new PresetDocument({}, DEFAULTS)

  assert.equal(draft.moveBy("main", -1), false)
  assert.equal(draft.isChanged, false)
  assert.equal(draft.moveBy("main", 1), true)
  assert.deepEqual(ids(draft), ["description", "main", "history"])
  assert.equal(draft.moveTo("description", 9), true)
  assert.deepEqual(ids(draft), ["main", "history", "description"])
  assert.equal(draft.isChanged, true)
  assert.deepEqual(
    DEFAULTS.prompt_order.map(({ id }) => id),
    ["main", "description", "history"],
  )
})

test("a custom prompt can be removed, an entry with a slot cannot", () => {
  const draft = new PresetDocument({}, DEFAULTS)

  const { id } = draft.add("Rain")
  const other = draft.add("Wind")
  assert.notEqual(id, other.id)
  draft.remove(id)
  draft.remove("history")

  assert.deepEqual(ids(draft), ["main", "description", "history", other.id])
  draft.resetOrder()
  assert.equal(draft.isChanged, false)
})

test("unknown keys are kept", () => {
  const draft = new PresetDocument({ of_tomorrow: { x: 1 } }, DEFAULTS)

  draft.set("temperature", 0.5)

  assert.deepEqual(draft.json, { of_tomorrow: { x: 1 }, temperature: 0.5 })
  draft.set("temperature", null)
  assert.equal(draft.isChanged, false)
})

test("a position is a depth in the chat or relative", () => {
  assert.deepEqual(placeOf({ place: "relative" }), { depth: null, order: 100 })
  assert.deepEqual(placeOf({ place: placeFrom(0, 7) }), { depth: 0, order: 7 })
  assert.equal(placeFrom(null), "relative")
})

test("only entries with a text of their own show one", () => {
  assert.deepEqual(
    [{ slot: "main" }, { slot: "history" }, { slot: null }, {}].map(hasText),
    [true, false, true, true],
  )
})

test("the highest layer with a value sets it", () => {
  const rows = decided({
    member: { temperature: 1 },
    memberPreset: { temperature: 2, top_k: 5 },
    space: null,
    spacePreset: { temperature: 3, top_p: null },
  })

  assert.deepEqual(rows, [
    { key: "temperature", value: 1, from: "member", over: ["member_preset", "space_preset"] },
    { key: "top_k", value: 5, from: "member_preset", over: [] },
  ])
})

test("a preset file is distinguished from a card and a lorebook", () => {
  const yes = [
    { spec: "troupe_preset" },
    { prompts: [] },
    { temp: 1, rep_pen: 1 },
    { temperature: 1, top_p: 0.9 },
    { story_string: "{{system}}" },
    { name: "Mine", input_sequence: "### Input:" },
    { instruct: { input_sequence: "### Input:" } },
    { main_api: "openai", power_user: {} },
  ]
  const no = [null, [], "x", { spec: "chara_card_v2", data: {} }, { entries: {} }, { temp: 1 }]

  assert.deepEqual([...yes, ...no].map(isPreset), [...yes.map(() => true), ...no.map(() => false)])
})
