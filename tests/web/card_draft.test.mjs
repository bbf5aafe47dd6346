// A card in the editor: the form values and the document.
import assert from "node:assert/strict"
import test from "node:test"
import { fieldsOf, withFields } from "../../static/js/models/characters/card_draft.js"

const CARD = {
  spec: "chara_card_v2",
  spec_version: "2.0",
  name: "Mina",
  fav: true,
  data: {
    name: "Mina",
    description: "A lighthouse keeper.",
    tags: ["sea", "calm, mostly"],
    alternate_greetings: ["", "Hello."],
    extensions: { talkativeness: "0.3", world: "Harbor", depth_prompt: { prompt: "Rain.", depth: "2", more: 1 } },
  },
}

test("an unchanged form changes nothing", () => {
  assert.equal(withFields(CARD, fieldsOf(CARD)), CARD)
})

test("fields that the form does not know survive a change", () => {
  const changed = withFields(CARD, { ...fieldsOf(CARD), description: "A baker." })

  const expected = structuredClone(CARD)
  expected.data.description = "A baker."
  assert.deepEqual(changed, expected)
  assert.equal(CARD.data.description, "A lighthouse keeper.")
})

test("a name that is repeated for older tools changes there too", () => {
  const changed = withFields(CARD, { ...fieldsOf(CARD), name: "Mina Vale" })

  assert.deepEqual([changed.name, changed.data.name], ["Mina Vale", "Mina Vale"])
})

test("numbers that are stored as text are shown as numbers", () => {
  const { talkativeness, depth_prompt: note } = fieldsOf(CARD)

  assert.equal(talkativeness, 0.3)
  assert.deepEqual(note, { prompt: "Rain.", depth: 2, role: "system" })
})

test("a changed extension keeps its other fields", () => {
  const note = { prompt: "Storm.", depth: 0, role: "user" }
  const changed = withFields(CARD, { ...fieldsOf(CARD), depth_prompt: note, talkativeness: null })

  assert.deepEqual(changed.data.extensions, { world: "Harbor", depth_prompt: { ...note, more: 1 } })
})

test("a card of version 1 is edited at the root", () => {
  const changed = withFields({ name: "Mina" }, { ...fieldsOf({ name: "Mina" }), first_mes: "Hi." })

  assert.deepEqual(changed, { name: "Mina", first_mes: "Hi." })
})
