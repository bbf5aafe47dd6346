// Author's notes in settings.
import assert from "node:assert/strict"
import test from "node:test"
import { readAuthorNote, wholeNumber, withAuthorNote } from "../../static/js/models/presets/author_note.js"

test("missing values of a note are the defaults", () => {
  assert.deepEqual(readAuthorNote({ author_note: { text: "rain", depth: 2, role: null } }), {
    text: "rain",
    position: "in_chat",
    depth: 2,
    role: "system",
    interval: 1,
    combine: "replace",
  })
  assert.equal(readAuthorNote(undefined).text, "")
})

test("a note is added to the settings, and one without text is removed", () => {
  const settings = { scenario_override: "sea", author_note: { text: "old", from_elsewhere: 1 } }

  const written = withAuthorNote(settings, { ...readAuthorNote(settings), text: " rain ", combine: "after" })

  assert.equal(written.scenario_override, "sea")
  assert.deepEqual(
    [written.author_note.text, written.author_note.from_elsewhere, written.author_note.combine],
    ["rain", 1, "after"],
  )
  assert.deepEqual(withAuthorNote(written, { ...readAuthorNote(written), text: " " }), { scenario_override: "sea" })
})

test("the default combination is not stored", () => {
  const note = withAuthorNote({ author_note: { text: "a", combine: "after" } }, { text: "a", combine: "replace" })
  assert.equal("combine" in note.author_note, false)
})

test("only a whole number within the limits is accepted", () => {
  for (const text of ["", " ", "-1", "1.5", "x", "10001"]) assert.equal(wholeNumber(text, 7), 7, text)
  assert.equal(wholeNumber("0", 7), 0)
  assert.equal(wholeNumber("12", 7), 12)
})
