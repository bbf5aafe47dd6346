// A continue in the open conversation: the message grows in its place.
import assert from "node:assert/strict"
import test from "node:test"
import OpenConversation from "../../static/js/models/conversation/open_conversation.js"
import { rows } from "../../static/js/models/conversation/timeline_rows.js"
import { isCut } from "../../static/js/models/message/swipes.js"
import { readSpeakerReason } from "../../static/js/models/queue/speaker_reason.js"
import { message, snapshot } from "./support.mjs"

const RUN = "0190-run"
const ADA = 2
const OLD = "Once upon"

function reply(rest = {}) {
  return message({ seq: 2, author: ADA, content: OLD, swipes: { count: 1, active: 0 }, ...rest })
}

function selectConversation(rest = {}) {
  const conversation = new OpenConversation({ conversationId: 7 })
  conversation.restore(snapshot({ messages: [message({ seq: 1 }), reply()], rev: 2, ...rest }))
  return conversation
}

function start(rest = {}) {
  const target_message_id = reply().id
  return { type: "typing_start", run_id: RUN, membership_id: ADA, kind: "continue", target_message_id, ...rest }
}

function continuing() {
  const conversation = selectConversation()
  assert.equal(conversation.apply(start({ base_length: OLD.length })), "stream")
  conversation.apply({ type: "stream_chunk", run_id: RUN, offset: OLD.length, delta: " a time" })
  return conversation
}

const bubbles = (conversation) =>
  rows({ conversation, entries: [], myMembershipId: 1, now: 0 }).filter((it) => it.kind !== "day")

test("a continued message grows in its place", () => {
  const conversation = continuing()
  const key = conversation.timeline.keyOf(reply())

  const shown = bubbles(conversation)

  assert.equal(shown.length, 2)
  assert.deepEqual([shown[1].key, shown[1].kind, shown[1].stream.text], [key, "stream", "Once upon a time"])
})

test("the whole text becomes the shown swipe of the message", () => {
  const conversation = continuing()

  const updated = reply({ content: "Once upon a time.", swipes: { count: 2, active: 1 } })
  conversation.apply({ type: "message_updated", rev: 3, message: updated })

  assert.equal(conversation.stream, null)
  assert.equal(conversation.timeline.tail.content, "Once upon a time.")
})

test("a reset returns to the continued text", () => {
  const conversation = continuing()

  conversation.apply({ type: "stream_reset", run_id: RUN })
  assert.equal(conversation.stream.text, OLD)

  conversation.apply({ type: "stream_reset", run_id: RUN, text: " a dream" })
  assert.equal(conversation.stream.text, "Once upon a dream")
})

test("a tab that joins later has the continued text and the new one", () => {
  const stream = { run_id: RUN, membership_id: ADA, base_length: OLD.length, text: "Once upon a" }
  const running_run = { id: RUN, speaker_space_membership_id: ADA, target_message_id: reply().id, kind: "continue" }
  const answer = snapshot({ messages: [message({ seq: 1 }), reply()], rev: 2 })
  const conversation = new OpenConversation({ conversationId: 7 })
  conversation.restore({ ...answer, snapshot: { ...answer.snapshot, stream, running_run } })

  conversation.apply({ type: "stream_chunk", run_id: RUN, offset: 11, delta: " time" })
  assert.equal(conversation.stream.text, "Once upon a time")

  conversation.apply({ type: "stream_reset", run_id: RUN })
  assert.equal(conversation.stream.text, OLD)
})

test("a stopped continue leaves the former text", () => {
  const conversation = continuing()

  conversation.apply({ type: "stream_complete", run_id: RUN, status: "canceled" })

  assert.equal(bubbles(conversation)[1].kind, "message")
  assert.equal(conversation.timeline.tail.content, OLD)
})

test("a continue of another text than the loaded one is a gap", () => {
  assert.equal(selectConversation().apply(start({ base_length: 4 })), "gap")
})

test("a continue that was superseded by a message has a notice", () => {
  const conversation = selectConversation()
  const run = { id: RUN, kind: "continue", status: "canceled", started_at: null, canceled_because: "superseded_by_message" }

  conversation.apply({ type: "run_canceled", rev: 3, run })

  assert.equal(conversation.notice.run.kind, "continue")
})

test("a truncated and a stopped text are cut", () => {
  assert.ok(isCut({ metadata: { truncated: true } }) && isCut({ metadata: { stopped: true } }))
  assert.ok(!isCut({ metadata: {} }) && !isCut({}))
})

test("the reason names the user who continued", () => {
  assert.equal(readSpeakerReason("continued by Ann").key, "speaker_reason.continued")
})
