// The open room: snapshot and events make what the server has, gaps are noticed, keys stay.
import assert from "node:assert/strict"
import test from "node:test"
import Room from "../../static/js/models/conversation/open_conversation.js"
import { message, snapshot } from "./support.mjs"

const RUN = "0190-run"

function openRoom(answer = snapshot({ messages: [message({ seq: 1 })], rev: 1 })) {
  const room = new Room({ conversationId: 7 })
  room.restore(answer)
  return room
}

function streaming(room, text = "") {
  room.apply({ type: "typing_start", run_id: RUN, membership_id: 2, kind: "user_turn" })
  if (text) room.apply({ type: "stream_chunk", run_id: RUN, offset: 0, delta: text })
  return room
}

test("the next rev is applied", () => {
  const room = openRoom()

  const what = room.apply({ type: "message_created", rev: 2, message: message({ seq: 2 }) })

  assert.equal(what, "messages")
  assert.equal(room.rev, 2)
  assert.equal(room.timeline.messages.length, 2)
})

test("a rev that was seen is ignored", () => {
  const room = openRoom()

  const what = room.apply({ type: "message_created", rev: 1, message: message({ seq: 9 }) })

  assert.equal(what, null)
  assert.equal(room.timeline.messages.length, 1)
})

test("a missing rev is a gap and changes nothing", () => {
  const room = openRoom()

  const what = room.apply({ type: "message_created", rev: 3, message: message({ seq: 3 }) })

  assert.equal(what, "gap")
  assert.equal(room.rev, 1)
  assert.equal(room.timeline.messages.length, 1)
})

test("deltas grow the text", () => {
  const room = streaming(openRoom(), "Hello")

  room.apply({ type: "stream_chunk", run_id: RUN, offset: 5, delta: " you" })

  assert.equal(room.stream.text, "Hello you")
})

test("an offset past the text is a gap", () => {
  const room = streaming(openRoom(), "Hello")

  assert.equal(room.apply({ type: "stream_chunk", run_id: RUN, offset: 9, delta: "!" }), "gap")
})

test("a delta of a run that is not known is a gap", () => {
  assert.equal(openRoom().apply({ type: "stream_chunk", run_id: "other", offset: 0, delta: "x" }), "gap")
})

test("a stream that is reset begins again from the given text", () => {
  const room = streaming(openRoom(), "Hel")

  room.apply({ type: "stream_reset", run_id: RUN, text: "Good" })

  assert.equal(room.stream.text, "Good")
})

test("the message of a stream takes over its key", () => {
  const room = streaming(openRoom(), "Hello")
  const key = room.keyForStream()

  room.apply({ type: "message_created", rev: 2, message: message({ seq: 2, conversation_run_id: RUN }) })

  assert.equal(room.stream, null)
  assert.equal(room.timeline.keyOf(room.timeline.tail), key)
})

test("my message takes over the key of its pending entry", () => {
  const room = openRoom()
  room.expect("abc")

  room.apply({ type: "message_created", rev: 2, message: message({ seq: 2, client_id: "abc" }) })

  assert.equal(room.timeline.keyOf(room.timeline.tail), room.keyForClientId("abc"))
})

test("a message that was written before the snapshot keeps its key in it", () => {
  const room = new Room({ conversationId: 7 })
  room.expect("abc")

  room.restore(snapshot({ messages: [message({ seq: 1, client_id: "abc" })], rev: 1 }))

  assert.equal(room.timeline.keyOf(room.timeline.tail), room.keyForClientId("abc"))
})

test("a message that ended a stream during a break takes over its key", () => {
  const room = streaming(openRoom(), "Hello")
  const key = room.keyForStream()

  room.restore(snapshot({ messages: [message({ seq: 2, conversation_run_id: RUN })], rev: 4 }))

  assert.equal(room.timeline.keyOf(room.timeline.tail), key)
  assert.equal(room.stream, null)
})

test("a stream in the snapshot goes on after a break", () => {
  const room = streaming(openRoom(), "Hello")

  room.restore(snapshot({ rev: 1, stream: { run_id: RUN, membership_id: 2, text: "Hello there" } }))
  room.apply({ type: "stream_chunk", run_id: RUN, offset: 11, delta: "!" })

  assert.equal(room.stream.text, "Hello there!")
})

test("a run without a word yet takes its first piece", () => {
  const room = openRoom(snapshot({ rev: 1, running_run: { id: RUN, speaker_space_membership_id: 2 } }))

  const what = room.apply({ type: "stream_chunk", run_id: RUN, offset: 0, delta: "Hello" })

  assert.equal(what, "stream")
  assert.equal(room.stream.text, "Hello")
  assert.equal(room.stream.membershipId, 2)
})

test("a snapshot with reset replaces what was there", () => {
  const room = openRoom()

  room.restore(snapshot({ messages: [message({ seq: 600 })], rev: 900, reset: true }))

  assert.deepEqual(
    room.timeline.messages.map(({ seq }) => seq),
    [600],
  )
})

test("a failed run leaves a notice until a newer message comes", () => {
  const room = streaming(openRoom(), "Hel")
  const error = { code: "upstream_error", message: "no", retryable: true }

  room.apply({
    type: "run_failed",
    rev: 2,
    run: { id: RUN, status: "failed", speaker_space_membership_id: 2 },
    error,
  })
  const shown = room.notice.run
  room.apply({ type: "message_created", rev: 3, message: message({ seq: 2 }) })

  assert.equal(room.stream, null)
  assert.equal(shown.error.code, "upstream_error")
  assert.equal(room.notice.run, null)
})

test("a notice goes with its round", () => {
  const room = streaming(openRoom())
  const round = { id: "round", slots: [] }
  room.apply({ type: "queue_updated", rev: 2, state: "generating", round })
  room.apply({
    type: "run_failed",
    rev: 3,
    run: { id: RUN, round_id: "round", status: "failed" },
    error: null,
  })
  room.apply({ type: "queue_updated", rev: 4, state: "failed", round })
  const whileFailed = room.notice.run

  room.apply({ type: "queue_updated", rev: 5, state: "idle", round: null })

  assert.equal(whileFailed.id, RUN)
  assert.equal(room.notice.run, null)
})

test("a notice goes when the next run begins", () => {
  const room = streaming(openRoom())
  room.apply({ type: "run_failed", rev: 2, run: { id: RUN, status: "failed" }, error: { code: "internal" } })

  room.apply({ type: "queue_updated", rev: 3, state: "queued", queued_run: { id: "next" } })

  assert.equal(room.notice.run, null)
})

test("a run that was held before it began needs no notice", () => {
  const room = openRoom()
  const run = { id: RUN, status: "canceled", started_at: null, created_at: new Date(0).toISOString() }

  room.apply({ type: "run_canceled", rev: 2, run })
  const whenTold = room.notice.run
  room.notice.recall([run], room.queue, null)

  assert.deepEqual([whenTold, room.notice.run], [null, null])
})

test("a new version that a message superseded is told to who asked for it", () => {
  const room = openRoom()
  const canceled_because = "superseded_by_message"
  const run = { id: RUN, kind: "regenerate", status: "canceled", started_at: null, canceled_because }

  room.apply({ type: "run_canceled", rev: 2, run, reason: canceled_because, message_id: 7 })

  assert.equal(room.notice.run.canceled_because, canceled_because)
})

test("a canceled run whose text was kept needs no notice", () => {
  const room = streaming(openRoom(), "Hel")

  room.apply({ type: "run_canceled", rev: 2, run: { id: RUN, status: "canceled" } })
  room.apply({ type: "message_created", rev: 3, message: message({ seq: 2, conversation_run_id: RUN }) })

  assert.equal(room.notice.run, null)
})

test("a page that opens later finds the newest failed run", () => {
  const room = openRoom()
  const run = {
    id: RUN,
    status: "failed",
    created_at: new Date(5000).toISOString(),
    finished_at: new Date(6000).toISOString(),
  }

  room.notice.recall([run], room.queue, room.timeline.tail)

  assert.equal(room.notice.run.id, RUN)
})

test("a snapshot shows the failed run whose event was missed", () => {
  const room = openRoom()
  const failed_run = { id: RUN, status: "failed", round_id: null, error: { code: "upstream_error" } }

  room.restore(snapshot({ rev: 9, messages: [message({ seq: 1 })], failed_run }))

  assert.equal(room.notice.run.id, RUN)
  assert.equal(room.notice.run.error.code, "upstream_error")
})

test("a failed run from before the newest message is history", () => {
  const room = openRoom()
  const run = {
    id: RUN,
    status: "failed",
    created_at: new Date(10).toISOString(),
    finished_at: new Date(20).toISOString(),
  }

  room.notice.recall([run], room.queue, room.timeline.tail)

  assert.equal(room.notice.run, null)
})

test("resync asks for everything since the last rev", () => {
  assert.equal(openRoom().apply({ type: "resync" }), "gap")
})

test("events before the first snapshot are left to it", () => {
  const room = new Room({ conversationId: 7 })

  assert.equal(room.apply({ type: "message_created", rev: 1, message: message({ seq: 1 }) }), null)
})

test("whose message has come has stopped typing", () => {
  const room = openRoom()
  room.apply({ type: "human_typing", membership_id: 3, active: true })
  const before = room.typing.active

  room.apply({ type: "message_created", rev: 2, message: message({ seq: 2, author: 3 }) })

  assert.deepEqual([before, room.typing.active], [[3], []])
})

test("it is known since when somebody is gone who was here", () => {
  let now = 1000
  const room = new Room({ conversationId: 7, clock: () => now })
  room.restore(snapshot({ rev: 1, presence: [{ membership_id: 3, state: "online" }] }))

  now = 5000
  room.apply({ type: "presence_updated", members: [{ membership_id: 4, state: "away" }] })
  const gone = [room.goneAt(3), room.goneAt(4), room.goneAt(9)]
  room.apply({ type: "presence_updated", members: [{ membership_id: 3, state: "online" }] })

  assert.deepEqual(gone, [5000, null, null])
  assert.equal(room.goneAt(3), null)
})
