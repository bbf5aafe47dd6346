// Regex scripts: how they are listed, tested and switched off in a space.
import { test } from "node:test"
import assert from "node:assert/strict"
import {
  affected,
  inFile,
  marks,
  presetsInUse,
  switchedOff,
  withSwitch,
} from "../../static/js/models/regex_scripts/regex_script.js"

const SCRIPT = {
  name: "Stars",
  find_regex: "/a/g",
  replace_string: "b",
  trim_strings: ["*"],
  placement: [0, 1, 2, 3, 5, 6],
  disabled: false,
  markdown_only: true,
  prompt_only: false,
  run_on_edit: true,
  substitute_regex: 2,
  min_depth: null,
  max_depth: 4,
}

test("placements without an effect are not listed", () => {
  assert.deepEqual(affected(SCRIPT), ["user_input", "ai_output", "world_info", "reasoning"])
  assert.deepEqual(affected({ placement: [4] }), [])
})

test("the marks of a script are in the order of the editor", () => {
  assert.deepEqual(marks(SCRIPT), ["markdown_only", "run_on_edit"])
})

test("a script is tested with the names of its file", () => {
  assert.deepEqual(inFile(SCRIPT), {
    findRegex: "/a/g",
    replaceString: "b",
    trimStrings: ["*"],
    substituteRegex: 2,
  })
})

test("scripts of a member or preset are switched off and on", () => {
  const settings = { time_zone: "UTC" }
  const off = withSwitch(settings, { kind: "membership_ids", id: 5, isOn: false })
  const both = withSwitch(off, { kind: "preset_ids", id: 2, isOn: false })

  assert.deepEqual(off, { time_zone: "UTC", regex_scripts_off: { membership_ids: [5] } })
  assert.deepEqual(both.regex_scripts_off, { membership_ids: [5], preset_ids: [2] })
  assert.deepEqual(switchedOff(both, "preset_ids"), [2])
  assert.deepEqual(withSwitch(off, { kind: "membership_ids", id: 5, isOn: false }), off)
  assert.deepEqual(withSwitch(off, { kind: "membership_ids", id: 5, isOn: true }), settings)
})

test("the presets of a space and its members are listed once", () => {
  const space = { settings: { preset: { preset_id: 3 } } }
  const members = [{ preset_id: 3 }, { preset_id: null }, { preset_id: 7 }]

  assert.deepEqual(presetsInUse(space, members), [3, 7])
  assert.deepEqual(presetsInUse({ settings: {} }, []), [])
})
