// Edits of messages: merged texts, drafts, and whether a run writes into a message.
import assert from "node:assert/strict"
import test from "node:test"
import EditDrafts from "../../static/js/models/message/edit_draft.js"
import { isWritten } from "../../static/js/models/message/swipes.js"
import { mergeTexts } from "../../static/js/models/message/text_merge.js"

const BASE = "one\ntwo\nthree\nfour"

function storage() {
  const all = new Map()
  return {
    getItem: (key) => all.get(key) ?? null,
    setItem: (key, value) => all.set(key, value),
    removeItem: (key) => all.delete(key),
    all,
  }
}

test("changes of different lines are merged", () => {
  const merged = mergeTexts(BASE, "ONE\ntwo\nthree\nfour", "one\ntwo\nthree\nFOUR\nfive")
  assert.deepEqual(merged, { text: "ONE\ntwo\nthree\nFOUR\nfive", isClean: true })
  assert.deepEqual(mergeTexts(BASE, "one\nthree\nfour", "one\ntwo\nthree\n4"), {
    text: "one\nthree\n4",
    isClean: true,
  })
})

test("a change of one side alone is kept", () => {
  assert.deepEqual(mergeTexts(BASE, "mine", BASE), { text: "mine", isClean: true })
  assert.deepEqual(mergeTexts(BASE, BASE, "theirs"), { text: "theirs", isClean: true })
  assert.deepEqual(mergeTexts(BASE, "same", "same"), { text: "same", isClean: true })
})

test("lines that both sides changed are there twice, theirs first", () => {
  const merged = mergeTexts(BASE, "one\nmine\nthree\nfour", "one\ntheirs\nthree\nfour")
  assert.deepEqual(merged, { text: "one\ntheirs\nmine\nthree\nfour", isClean: false })
  assert.deepEqual(mergeTexts("a", "mine", "theirs"), { text: "theirs\nmine", isClean: false })
})

test("no line of either side is lost, whatever they changed", () => {
  const texts = ["", "a", "a\nb", "b\na", "a\nx\nb", "x\ny", "a\nb\nc", "c\nb\na", "a\na"]
  for (const base of texts)
    for (const mine of texts)
      for (const theirs of texts) {
        const { text, isClean } = mergeTexts(base, mine, theirs)
        const old = base.split("\n")
        const lines = text.split("\n")
        const fresh = (side) => side.split("\n").filter((line) => !old.includes(line))
        for (const line of [...fresh(mine), ...fresh(theirs)]) {
          assert.ok(lines.includes(line), JSON.stringify({ base, mine, theirs, text }))
        }
        if (mine !== theirs && mine !== base && theirs !== base && !isClean) assert.notEqual(text, base)
      }
})

test("the draft of an edit survives a reload, one for each conversation", () => {
  const store = storage()
  const draft = { messageId: 5, version: 2, base: "Old.", text: "New." }
  new EditDrafts(store, 1).write(7, draft)

  assert.deepEqual(new EditDrafts(store, 1).read(7), draft)
  assert.equal(new EditDrafts(store, 1).read(8), null)
  assert.equal(new EditDrafts(store, 2).read(7), null)
})

test("only the message of the draft clears it", () => {
  const drafts = new EditDrafts(storage(), 1)
  drafts.write(7, { messageId: 5, version: 2, base: "Old.", text: "New." })

  drafts.clear(7, 6)
  assert.equal(drafts.read(7).messageId, 5)
  drafts.clear(7, 5)
  assert.equal(drafts.read(7), null)
})

test("a damaged draft is ignored", () => {
  const store = storage()
  const drafts = new EditDrafts(store, 1)
  for (const text of ["{", "null", "[]", '{"messageId":"5","version":1,"base":"","text":"x"}', '{"messageId":5}']) {
    store.setItem("troupe.edit.1.7", text)
    assert.equal(drafts.read(7), null, text)
  }
})

test("a message is written only by the run that names it", () => {
  const conversation = (stream, running_run = null) => ({ stream, queue: { running_run } })
  assert.equal(isWritten({ id: 5 }, conversation(null)), false)
  assert.equal(isWritten({ id: 5 }, conversation({ targetId: null })), false)
  assert.equal(isWritten({ id: 5 }, conversation({ targetId: 5 })), true)
  assert.equal(isWritten({ id: 5 }, conversation(null, { target_message_id: 5 })), true)
  assert.equal(isWritten({ id: 5 }, conversation(null, { target_message_id: 6 })), false)
})
