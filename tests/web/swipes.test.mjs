// Swipes: steps, regenerated text in the place of its message, and the tree of conversations.
import assert from "node:assert/strict"
import test from "node:test"
import { conversationTree } from "../../static/js/models/conversation/conversation_tree.js"
import OpenConversation from "../../static/js/models/conversation/open_conversation.js"
import { rows } from "../../static/js/models/conversation/timeline_rows.js"
import { swipeTarget } from "../../static/js/models/message/swipes.js"
import { message, snapshot } from "./support.mjs"

const RUN = "0190-again"
const ADA = 2

function answer(rest = {}) {
  return message({ seq: 2, author: ADA, content: "Hello.", swipes: { count: 1, active: 0 }, ...rest })
}

function rewriting(text = "Good") {
  const conversation = new OpenConversation({ conversationId: 7 })
  conversation.restore(snapshot({ messages: [message({ seq: 1 }), answer()], rev: 2 }))
  conversation.apply({
    type: "typing_start",
    run_id: RUN,
    membership_id: ADA,
    kind: "regenerate",
    target_message_id: 102,
  })
  if (text) conversation.apply({ type: "stream_chunk", run_id: RUN, offset: 0, delta: text })
  return conversation
}

function shown(conversation) {
  const list = rows({ conversation, entries: [], myMembershipId: 1, now: 0 })
  return list.filter(({ kind }) => kind !== "day")
}

test("a step leads to the next swipe, and after the last one to a new one", () => {
  const of = (active) => ({ swipes: { count: 3, active } })

  assert.equal(swipeTarget(of(1), 1), 2)
  assert.equal(swipeTarget(of(1), -1), 0)
  assert.equal(swipeTarget(of(0), -1), null)
  assert.equal(swipeTarget(of(2), 1), "new")
})

test("the swipes of a greeting wrap around", () => {
  const greeting = (count, active) => ({ swipes: { count, active }, metadata: { greeting: true } })

  assert.equal(swipeTarget(greeting(3, 2), 1), 0)
  assert.equal(swipeTarget(greeting(3, 0), -1), 2)
  assert.equal(swipeTarget(greeting(1, 0), 1), null)
})

test("a regenerated text is streamed in the place of its message", () => {
  const conversation = rewriting()
  const [, row, ...rest] = shown(conversation)

  assert.deepEqual(rest, [])
  assert.equal(row.kind, "stream")
  assert.equal(row.key, conversation.timeline.keyOf({ id: 102 }))
  assert.equal(row.key, conversation.keyForStream())
  assert.equal(row.stream.text, "Good")
  assert.equal(row.authorId, ADA)
})

test("the new swipe replaces the stream", () => {
  const conversation = rewriting()
  const fresh = answer({ rev: 3, content: "Good day.", swipes: { count: 2, active: 1 } })

  conversation.apply({ type: "message_updated", rev: 3, message: fresh })

  assert.equal(conversation.stream, null)
  assert.equal(shown(conversation)[1].message.content, "Good day.")
})

test("a change without a new swipe keeps the stream", () => {
  const conversation = rewriting()

  conversation.apply({ type: "message_updated", rev: 3, message: answer({ rev: 3, visibility: "excluded" }) })

  assert.equal(shown(conversation)[1].kind, "stream")
})

for (const type of ["run_failed", "run_canceled"]) {
  test(`the old text is back after ${type}`, () => {
    const conversation = rewriting()

    conversation.apply({ type, rev: 3, run: { id: RUN, target_message_id: 102, kind: "regenerate" } })

    assert.equal(conversation.stream, null)
    assert.equal(shown(conversation)[1].message.content, "Hello.")
    assert.equal(conversation.notice.isEmpty, false)
  })
}

test("a tab that opens later shows the stream in the place of its message", () => {
  const conversation = new OpenConversation({ conversationId: 7 })
  const running = { id: RUN, speaker_space_membership_id: ADA, target_message_id: 102 }
  const stream = { run_id: RUN, membership_id: ADA, text: "Go" }

  conversation.restore(snapshot({ messages: [answer()], rev: 2, running_run: running, stream }))

  assert.equal(shown(conversation)[0].stream.text, "Go")
})

test("a partial text that was kept needs no card", () => {
  const conversation = rewriting()
  const kept = answer({ rev: 3, content: "Good", swipes: { count: 2, active: 1 }, metadata: { stopped: true } })
  conversation.apply({ type: "message_updated", rev: 3, message: kept })

  conversation.apply({
    type: "run_canceled",
    rev: 4,
    run: { id: RUN, target_message_id: 102, kind: "regenerate", status: "canceled" },
  })
  conversation.apply({ type: "queue_updated", rev: 5, state: "idle" })

  assert.equal(conversation.notice.isEmpty, true)
})

test("a skipped regeneration is shown", () => {
  const conversation = rewriting("")
  const run = { id: "0190-other", target_message_id: 102, kind: "regenerate", status: "skipped" }

  conversation.apply({ type: "run_skipped", rev: 3, run })

  assert.equal(conversation.notice.run.status, "skipped")
})

test("branches are listed below their conversation", () => {
  const place = (id, parent = null) => ({ id, parent_conversation_id: parent })

  const places = conversationTree([place(1), place(2), place(3, 1), place(4, 3), place(5, 1), place(6, 99)])

  assert.deepEqual(
    places.map(({ id, depth }) => [id, depth]),
    [
      [1, 0],
      [3, 1],
      [4, 2],
      [5, 1],
      [2, 0],
      [6, 0],
    ],
  )
})
