// The timeline: order, one entry for each message, stable keys.
import assert from "node:assert/strict"
import test from "node:test"
import Timeline from "../../static/js/models/conversation/timeline.js"
import { message } from "./support.mjs"

test("messages are ordered by seq, in whatever order they arrive", () => {
  const timeline = new Timeline()

  for (const seq of [2, 1, 4, 3]) timeline.put(message({ seq }))

  assert.deepEqual(
    timeline.messages.map(({ seq }) => seq),
    [1, 2, 3, 4],
  )
})

test("a message that arrives twice is shown once", () => {
  const timeline = new Timeline()

  timeline.put(message({ seq: 1 }))
  timeline.put(message({ seq: 1 }))

  assert.equal(timeline.messages.length, 1)
})

test("an older version does not replace a newer one", () => {
  const timeline = new Timeline()
  timeline.put(message({ seq: 1, rev: 5, content: "new" }))

  const changed = timeline.put(message({ seq: 1, rev: 4, content: "old" }))

  assert.equal(changed, false)
  assert.equal(timeline.messages[0].content, "new")
})

test("a hidden message is removed and can be restored at its place", () => {
  const timeline = new Timeline()
  for (const seq of [1, 2, 3]) timeline.put(message({ seq }))

  timeline.put({ id: 102, seq: 2, visibility: "hidden", rev: 9 })
  const without = timeline.messages.map(({ seq }) => seq)
  timeline.put(message({ seq: 2, rev: 10 }))

  assert.deepEqual(without, [1, 3])
  assert.deepEqual(
    timeline.messages.map(({ seq }) => seq),
    [1, 2, 3],
  )
})

test("a change of a message that is not loaded makes no gap", () => {
  const timeline = new Timeline()
  timeline.reset([message({ seq: 50 }), message({ seq: 51 })])

  timeline.put(message({ seq: 3, rev: 99 }))

  assert.deepEqual(
    timeline.messages.map(({ seq }) => seq),
    [50, 51],
  )
})

test("a message keeps the key of its pending entry", () => {
  const timeline = new Timeline()

  timeline.put(message({ seq: 1 }), "c-abc")
  timeline.put(message({ seq: 1, rev: 2 }))

  assert.equal(timeline.keyOf(timeline.messages[0]), "c-abc")
})

test("a range that begins with the first message has nothing older", () => {
  const timeline = new Timeline()

  timeline.reset([message({ seq: 1 }), message({ seq: 2 })])

  assert.equal(timeline.mayHaveOlder, false)
})

test("an empty conversation has nothing older", () => {
  const timeline = new Timeline()

  timeline.reset([])

  assert.equal(timeline.mayHaveOlder, false)
})
