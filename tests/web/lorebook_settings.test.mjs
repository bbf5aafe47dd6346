// World Info settings of a space.
import assert from "node:assert/strict"
import test from "node:test"
import { numberOf, withLorebookSettings, readLorebookSettings } from "../../static/js/models/lorebooks/lorebook_settings.js"

test("missing rules are the defaults", () => {
  const world = readLorebookSettings({ world_info: { scan_depth: 7, recursive: null, from_elsewhere: 1 } })

  assert.deepEqual(
    [world.scan_depth, world.recursive, world.token_budget_percent, world.include_names],
    [7, false, 25, true],
  )
  assert.equal("from_elsewhere" in world, false)
  assert.equal(readLorebookSettings(undefined).insertion_strategy, "character_lore_first")
})

test("only values that differ from the defaults are stored, next to unknown ones and other settings", () => {
  const settings = { scenario_override: "sea", world_info: { scan_depth: 9, from_elsewhere: 1 } }

  const written = withLorebookSettings(settings, { ...readLorebookSettings(settings), scan_depth: 4, whole_words: true })

  assert.deepEqual(written, {
    scenario_override: "sea",
    world_info: { from_elsewhere: 1, scan_depth: 4, whole_words: true },
  })
  assert.deepEqual(withLorebookSettings({ a: 1, world_info: { scan_depth: 9 } }, readLorebookSettings({})), { a: 1 })
})

test("an empty field is the default", () => {
  assert.equal(numberOf("scan_depth", " "), 2)
  assert.equal(numberOf("max_steps", ""), 3)
  assert.equal(numberOf("token_budget_percent", "0"), 0)
  assert.equal(numberOf("scan_depth", "1001"), 1001)
})
