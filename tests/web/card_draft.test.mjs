// A card in the editor: what the form shows, and what becomes of the document.
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

test("a form that was not touched changes nothing", () => {
  assert.equal(withFields(CARD, fieldsOf(CARD)), CARD)
})

test("what no form knows survives a change", () => {
  const changed = withFields(CARD, { ...fieldsOf(CARD), description: "A baker." })

  const expected = structuredClone(CARD)
  expected.data.description = "A baker."
  assert.deepEqual(changed, expected)
  assert.equal(CARD.data.description, "A lighthouse keeper.")
})

test("a name that older tools read beside the data changes there too", () => {
  const changed = withFields(CARD, { ...fieldsOf(CARD), name: "Mina Vale" })

  assert.deepEqual([changed.name, changed.data.name], ["Mina Vale", "Mina Vale"])
})

test("numbers that were written as text are shown as what they are", () => {
  const { talkativeness, depth_prompt: note } = fieldsOf(CARD)

  assert.equal(talkativeness, 0.3)
  assert.deepEqual(note, { prompt: "Rain.", depth: 2, role: "system" })
})

test("an extension that is changed keeps what stands beside it", () => {
  const note = { prompt: "Storm.", depth: 0, role: "user" }
  const changed = withFields(CARD, { ...fieldsOf(CARD), depth_prompt: note, talkativeness: null })

  assert.deepEqual(changed.data.extensions, { world: "Harbor", depth_prompt: { ...note, more: 1 } })
})

test("a card of the first version is edited where its fields stand", () => {
  const changed = withFields({ name: "Mina" }, { ...fieldsOf({ name: "Mina" }), first_mes: "Hi." })

  assert.deepEqual(changed, { name: "Mina", first_mes: "Hi." })
})
