// Lorebooks: an entry in a form, and why one is activated.
import assert from "node:assert/strict"
import test from "node:test"
import { looksLikeLorebook, previewOf } from "../../static/js/models/lorebooks/lorebook_file.js"
import { changesOf, matching, split, valuesOf } from "../../static/js/models/lorebooks/lorebook_entry.js"
import { readLorebookPosition } from "../../static/js/models/lorebooks/lorebook_position.js"
import { readLorebookReason } from "../../static/js/models/lorebooks/lorebook_reason.js"
import english from "../../static/js/strings/en/lorebooks.js"

const ENTRY = {
  name: "Gulls",
  keys: ["gull", "/a{1,2}/i"],
  secondary_keys: [],
  content: "They steal.",
  enabled: true,
  constant: false,
  insertion_order: 100,
  extensions: { position: 4, depth: 2, role: 1, case_sensitive: null, sticky: null, probability: 80, x: 1 },
}

test("unchanged fields are not sent", () => {
  const values = valuesOf(ENTRY)

  assert.deepEqual(changesOf(values, valuesOf(ENTRY)), {})
})

test("each change is sent alone, at its place in the document", () => {
  const before = valuesOf(ENTRY)
  const changes = (after) => changesOf(before, { ...before, ...after })

  assert.deepEqual(changes({ keys: "gull, tern" }), { keys: ["gull", "tern"] })
  assert.deepEqual(changes({ sticky: "3" }), { extensions: { sticky: 3 } })
  assert.deepEqual(changes({ probability: " " }), { extensions: { probability: null } })
  assert.deepEqual(changes({ case_sensitive: "no" }), { extensions: { case_sensitive: false } })
  assert.deepEqual(changes({ level: "2", enabled: false }), {
    enabled: false,
    extensions: { delay_until_recursion: 2 },
  })
  assert.deepEqual(changes({ filter_names: "Ada, Bo" }), {
    extensions: { character_filter: { isExclude: false, names: ["Ada", "Bo"], tags: [] } },
  })
})

test("keys are separated by commas, but not inside of a pattern", () => {
  assert.deepEqual(split("gull, tern ,"), ["gull", "tern"])
  assert.deepEqual(split("/a{1,2}/i, b, /c\\/,d/"), ["/a{1,2}/i", "b", "/c\\/,d/"])
  assert.deepEqual(split("and/or, b"), ["and/or", "b"])
  assert.deepEqual(split(" "), [])
})

test("a search finds an entry by its name, its keys and its content", () => {
  const names = (search) => matching([ENTRY, { name: "Quay", content: "Stone." }], search).map((it) => it.name)

  assert.deepEqual(names(""), ["Gulls", "Quay"])
  assert.deepEqual(names("STEAL gull"), ["Gulls"])
  assert.deepEqual(names("stone gull"), [])
})

test("every reason of the server has a text", () => {
  assert.deepEqual(readLorebookReason("key: a: b"), { key: "lorebook_reason.key", values: { detail: "a: b" } })
  assert.deepEqual(readLorebookReason("no_key"), { key: "lorebook_reason.no_key", values: { detail: "" } })
  assert.equal(readLorebookReason("sung"), null)
  for (const key of Object.keys(english).filter((it) => it.startsWith("lore_because.")))
    assert.ok(readLorebookReason(key.slice("lore_because.".length)), key)
})

test("a lorebook is detected by its content, and a card with a lorebook is a card", () => {
  for (const book of [
    { entries: {} },
    { entries: [] },
    { spec: "lorebook_v3", data: {} },
    { kind: "memory", entries: [] },
    { type: "risu", data: [] },
    { lorebookVersion: 4 },
  ])
    assert.equal(looksLikeLorebook(book), true, JSON.stringify(book))
  for (const other of [null, [], 5, {}, { spec: "chara_card_v2", entries: [] }, { entries: 5 }])
    assert.equal(looksLikeLorebook(other), false, JSON.stringify(other))
})

test("a lorebook without a name is named after its file", () => {
  const world = { entries: { 0: {}, 1: {} } }

  assert.deepEqual(previewOf(world, "The coast.json"), { name: "The coast", n: 2 })
  assert.deepEqual(previewOf({ ...world, name: " Quay " }, "x.json"), { name: "Quay", n: 2 })
  assert.deepEqual(previewOf({ spec: "lorebook_v3", data: { entries: [1] } }, "x.json"), { name: "x", n: 1 })
})

test("a position has its label, and a depth also the role of its text", () => {
  assert.deepEqual(readLorebookPosition({ type: "note_top" }), {
    key: "lorebook_choice.position_2",
    values: { depth: null, name: "" },
    role: null,
  })
  assert.deepEqual(readLorebookPosition({ type: "at_depth", depth: 4, role: "user" }), {
    key: "lorebook_position.at_depth",
    values: { depth: 4, name: "" },
    role: "lorebook_choice.role_1",
  })
  assert.equal(readLorebookPosition({ type: "outlet", name: "map" }).values.name, "map")
  assert.equal(readLorebookPosition({ type: "elsewhere" }), null)
})
