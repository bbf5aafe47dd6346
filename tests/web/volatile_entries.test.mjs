// Presets: the entries that change the beginning of a prompt with every turn.
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"
import { volatileMacros, volatileMacrosOf } from "../../static/js/models/presets/volatile_entries.js"

const CASES = new URL("../fixtures/volatile_macros.json", import.meta.url)

// `crates/tavern/src/macros/syntax/volatile_macros.rs` checks the same cases.
test("macros of time, chance and the newest message are volatile", () => {
  for (const { text, found } of JSON.parse(readFileSync(CASES, "utf8"))) {
    assert.deepEqual(volatileMacros(text), found, text)
  }
})

test("only an entry that is sent before the history is marked", () => {
  const text = "It is {{time}}."
  const entry = (id, fields) => ({ id, text, slot: null, enabled: true, place: "relative", ...fields })
  const marked = (entries) =>
    entries.filter((it) => volatileMacrosOf(it, entries).length > 0).map(({ id }) => id)

  const entries = [
    entry("main", { slot: "main" }),
    entry("off", { enabled: false }),
    entry("not sent", { system_prompt: true }),
    entry("in chat", { place: { in_chat: { depth: 4, order: 100 } } }),
    entry("a slot", { slot: "scenario" }),
    entry("unplaced", { place: undefined }),
    entry("history", { slot: "history", text: undefined }),
    entry("after", {}),
  ]
  const withoutHistory = entries.map((it) => (it.id === "history" ? { ...it, enabled: false } : it))

  assert.deepEqual(marked(entries), ["main", "unplaced"])
  assert.deepEqual(marked(withoutHistory), ["main", "unplaced", "after"])
})
