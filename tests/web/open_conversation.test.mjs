// The open conversation: snapshots and events, gaps, stable keys.
import assert from "node:assert/strict"
import test from "node:test"
import OpenConversation from "../../static/js/models/conversation/open_conversation.js"
import { message, snapshot } from "./support.mjs"

const RUN = "0190-run"

function selectConversation(answer = snapshot({ messages: [message({ seq: 1 })], rev: 1 })) {
  const conversation = new OpenConversation({ conversationId: 7 })
  conversation.restore(answer)
  return conversation
}

function streaming(conversation, text = "") {
  conversation.apply({ type: "typing_start", run_id: RUN, membership_id: 2, kind: "user_turn" })
  if (text) conversation.apply({ type: "stream_chunk", run_id: RUN, offset: 0, delta: text })
  return conversation
}

test("the next rev is applied", () => {
  const conversation = selectConversation()

  const what = conversation.apply({ type: "message_created", rev: 2, message: message({ seq: 2 }) })

  assert.equal(what, "messages")
  assert.equal(conversation.rev, 2)
  assert.equal(conversation.timeline.messages.length, 2)
})

test("an applied rev is ignored", () => {
  const conversation = selectConversation()

  const what = conversation.apply({ type: "message_created", rev: 1, message: message({ seq: 9 }) })

  assert.equal(what, null)
  assert.equal(conversation.timeline.messages.length, 1)
})

test("a missing rev is a gap and changes nothing", () => {
  const conversation = selectConversation()

  const what = conversation.apply({ type: "message_created", rev: 3, message: message({ seq: 3 }) })

  assert.equal(what, "gap")
  assert.equal(conversation.rev, 1)
  assert.equal(conversation.timeline.messages.length, 1)
})

test("deltas are appended to the text", () => {
  const conversation = streaming(selectConversation(), "Hello")

  conversation.apply({ type: "stream_chunk", run_id: RUN, offset: 5, delta: " you" })

  assert.equal(conversation.stream.text, "Hello you")
})

test("an offset after the text is a gap", () => {
  const conversation = streaming(selectConversation(), "Hello")

  assert.equal(conversation.apply({ type: "stream_chunk", run_id: RUN, offset: 9, delta: "!" }), "gap")
})

test("a delta of an unknown run is a gap", () => {
  assert.equal(selectConversation().apply({ type: "stream_chunk", run_id: "other", offset: 0, delta: "x" }), "gap")
})

test("a reset stream continues from the given text", () => {
  const conversation = streaming(selectConversation(), "Hel")

  conversation.apply({ type: "stream_reset", run_id: RUN, text: "Good" })

  assert.equal(conversation.stream.text, "Good")
})

test("the message of a stream keeps its key", () => {
  const conversation = streaming(selectConversation(), "Hello")
  const key = conversation.keyForStream()

  conversation.apply({ type: "message_created", rev: 2, message: message({ seq: 2, conversation_run_id: RUN }) })

  assert.equal(conversation.stream, null)
  assert.equal(conversation.timeline.keyOf(conversation.timeline.tail), key)
})

test("a sent message keeps the key of its pending entry", () => {
  const conversation = selectConversation()
  conversation.expect("abc")

  conversation.apply({ type: "message_created", rev: 2, message: message({ seq: 2, client_id: "abc" }) })

  assert.equal(conversation.timeline.keyOf(conversation.timeline.tail), conversation.keyForClientId("abc"))
})

test("a message sent before the snapshot keeps its key", () => {
  const conversation = new OpenConversation({ conversationId: 7 })
  conversation.expect("abc")

  conversation.restore(snapshot({ messages: [message({ seq: 1, client_id: "abc" })], rev: 1 }))

  assert.equal(conversation.timeline.keyOf(conversation.timeline.tail), conversation.keyForClientId("abc"))
})

test("a message that ended a stream during a lost connection keeps its key", () => {
  const conversation = streaming(selectConversation(), "Hello")
  const key = conversation.keyForStream()

  conversation.restore(snapshot({ messages: [message({ seq: 2, conversation_run_id: RUN })], rev: 4 }))

  assert.equal(conversation.timeline.keyOf(conversation.timeline.tail), key)
  assert.equal(conversation.stream, null)
})

test("a stream in the snapshot continues after a lost connection", () => {
  const conversation = streaming(selectConversation(), "Hello")

  conversation.restore(snapshot({ rev: 1, stream: { run_id: RUN, membership_id: 2, text: "Hello there" } }))
  conversation.apply({ type: "stream_chunk", run_id: RUN, offset: 11, delta: "!" })

  assert.equal(conversation.stream.text, "Hello there!")
})

test("a run without text accepts its first delta", () => {
  const conversation = selectConversation(snapshot({ rev: 1, running_run: { id: RUN, speaker_space_membership_id: 2 } }))

  const what = conversation.apply({ type: "stream_chunk", run_id: RUN, offset: 0, delta: "Hello" })

  assert.equal(what, "stream")
  assert.equal(conversation.stream.text, "Hello")
  assert.equal(conversation.stream.membershipId, 2)
})

test("a snapshot with reset replaces the messages", () => {
  const conversation = selectConversation()

  conversation.restore(snapshot({ messages: [message({ seq: 600 })], rev: 900, reset: true }))

  assert.deepEqual(
    conversation.timeline.messages.map(({ seq }) => seq),
    [600],
  )
})

test("a failed run has a notice until a newer message arrives", () => {
  const conversation = streaming(selectConversation(), "Hel")
  const error = { code: "upstream_error", message: "no", retryable: true }

  conversation.apply({
    type: "run_failed",
    rev: 2,
    run: { id: RUN, status: "failed", speaker_space_membership_id: 2 },
    error,
  })
  const shown = conversation.notice.run
  conversation.apply({ type: "message_created", rev: 3, message: message({ seq: 2 }) })

  assert.equal(conversation.stream, null)
  assert.equal(shown.error.code, "upstream_error")
  assert.equal(conversation.notice.run, null)
})

test("a notice ends with its round", () => {
  const conversation = streaming(selectConversation())
  const round = { id: "round", slots: [] }
  conversation.apply({ type: "queue_updated", rev: 2, state: "generating", round })
  conversation.apply({
    type: "run_failed",
    rev: 3,
    run: { id: RUN, round_id: "round", status: "failed" },
    error: null,
  })
  conversation.apply({ type: "queue_updated", rev: 4, state: "failed", round })
  const whileFailed = conversation.notice.run

  conversation.apply({ type: "queue_updated", rev: 5, state: "idle", round: null })

  assert.equal(whileFailed.id, RUN)
  assert.equal(conversation.notice.run, null)
})

test("a notice ends when the next run begins", () => {
  const conversation = streaming(selectConversation())
  conversation.apply({ type: "run_failed", rev: 2, run: { id: RUN, status: "failed" }, error: { code: "internal" } })

  conversation.apply({ type: "queue_updated", rev: 3, state: "queued", queued_run: { id: "next" } })

  assert.equal(conversation.notice.run, null)
})

test("a run that was canceled before it started has no notice", () => {
  const conversation = selectConversation()
  const run = { id: RUN, status: "canceled", started_at: null, created_at: new Date(0).toISOString() }

  conversation.apply({ type: "run_canceled", rev: 2, run })
  const whenTold = conversation.notice.run
  conversation.notice.recall([run], conversation.queue, null)

  assert.deepEqual([whenTold, conversation.notice.run], [null, null])
})

test("a regeneration that was superseded by a message has a notice", () => {
  const conversation = selectConversation()
  const canceled_because = "superseded_by_message"
  const run = { id: RUN, kind: "regenerate", status: "canceled", started_at: null, canceled_because }

  conversation.apply({ type: "run_canceled", rev: 2, run, reason: canceled_because, message_id: 7 })

  assert.equal(conversation.notice.run.canceled_because, canceled_because)
})

test("a canceled run whose text was kept has no notice", () => {
  const conversation = streaming(selectConversation(), "Hel")

  conversation.apply({ type: "run_canceled", rev: 2, run: { id: RUN, status: "canceled" } })
  conversation.apply({ type: "message_created", rev: 3, message: message({ seq: 2, conversation_run_id: RUN }) })

  assert.equal(conversation.notice.run, null)
})

test("a tab that opens later finds the newest failed run", () => {
  const conversation = selectConversation()
  const run = {
    id: RUN,
    status: "failed",
    created_at: new Date(5000).toISOString(),
    finished_at: new Date(6000).toISOString(),
  }

  conversation.notice.recall([run], conversation.queue, conversation.timeline.tail)

  assert.equal(conversation.notice.run.id, RUN)
})

test("a snapshot shows the failed run whose event was missed", () => {
  const conversation = selectConversation()
  const failed_run = { id: RUN, status: "failed", round_id: null, error: { code: "upstream_error" } }

  conversation.restore(snapshot({ rev: 9, messages: [message({ seq: 1 })], failed_run }))

  assert.equal(conversation.notice.run.id, RUN)
  assert.equal(conversation.notice.run.error.code, "upstream_error")
})

test("a failed run before the newest message has no notice", () => {
  const conversation = selectConversation()
  const run = {
    id: RUN,
    status: "failed",
    created_at: new Date(10).toISOString(),
    finished_at: new Date(20).toISOString(),
  }

  conversation.notice.recall([run], conversation.queue, conversation.timeline.tail)

  assert.equal(conversation.notice.run, null)
})

test("resync requests everything since the last rev", () => {
  assert.equal(selectConversation().apply({ type: "resync" }), "gap")
})

test("events before the first snapshot are ignored", () => {
  const conversation = new OpenConversation({ conversationId: 7 })

  assert.equal(conversation.apply({ type: "message_created", rev: 1, message: message({ seq: 1 }) }), null)
})

test("a message ends the typing state of its author", () => {
  const conversation = selectConversation()
  conversation.apply({ type: "human_typing", membership_id: 3, active: true })
  const before = conversation.typing.active

  conversation.apply({ type: "message_created", rev: 2, message: message({ seq: 2, author: 3 }) })

  assert.deepEqual([before, conversation.typing.active], [[3], []])
})

test("the time when a member left is known", () => {
  let now = 1000
  const conversation = new OpenConversation({ conversationId: 7, clock: () => now })
  conversation.restore(snapshot({ rev: 1, presence: [{ membership_id: 3, state: "online" }] }))

  now = 5000
  conversation.apply({ type: "presence_updated", members: [{ membership_id: 4, state: "away" }] })
  const gone = [conversation.goneAt(3), conversation.goneAt(4), conversation.goneAt(9)]
  conversation.apply({ type: "presence_updated", members: [{ membership_id: 3, state: "online" }] })

  assert.deepEqual(gone, [5000, null, null])
  assert.equal(conversation.goneAt(3), null)
})
