// Rounds: speakers and reasons, controls, editing a round, and auto mode.
import assert from "node:assert/strict"
import test from "node:test"
import { describeAutoMode } from "../../static/js/models/queue/auto_mode.js"
import { readSpeakerReason } from "../../static/js/models/queue/speaker_reason.js"
import { droppedBy, maySkip, pendingSlots } from "../../static/js/models/queue/queue.js"
import OpenConversation from "../../static/js/models/conversation/open_conversation.js"
import RoundDraft from "../../static/js/models/queue/round_draft.js"
import ServerClock from "../../static/js/models/queue/server_clock.js"
import { look, queue, run } from "./queue_support.mjs"
import { snapshot } from "./support.mjs"

const MINA = 5
const ROOK = 6
const IRIS = 7

// `["spoken 5", "pending 6"]`: the status of a slot and its membership.
function round(slots, { id = "q", state = "generating" } = {}) {
  const made = slots.map((text, position) => {
    const [status, member] = text.split(" ")
    return {
      position,
      membership_id: Number(member),
      status,
      skip_reason: status === "skipped" ? "not_schedulable" : null,
      chosen_because: `reason ${position}`,
    }
  })
  const cursor = made.findIndex(({ status }) => status === "pending")
  return { id, status: "active", state, cursor, trigger_message_id: 1, slots: made }
}

const effectiveRole = ({ slots }) => slots.map(({ state }) => state)

test("the queue has the current speaker, the reason and the next ones", () => {
  const found = look({
    round: round(["pending 5", "pending 6"]),
    running: run(0, MINA, { chosen_because: "mentioned" }),
  })

  assert.deepEqual([found.now, found.next, found.reason, found.upcoming], [MINA, null, "mentioned", [ROOK]])
  assert.deepEqual(effectiveRole(found), ["speaking", "pending"])
})

test("a queued run is next, with the reason of its slot and its time", () => {
  const found = look({
    state: "queued",
    round: round(["pending 5"]),
    queued: run(0, MINA, { run_after: "2026-11-21T10:00:00Z" }),
  })

  assert.deepEqual([found.next, found.reason, found.upcoming], [MINA, "reason 0", []])
  assert.equal(found.startsAt, "2026-11-21T10:00:00Z")
  assert.deepEqual(effectiveRole(found), ["next"])
})

test("the slots of a round are in order, with the reason of a skipped one", () => {
  const found = look({
    round: round(["spoken 5", "skipped 6", "pending 7", "pending 5"]),
    running: run(2, IRIS),
  })

  assert.deepEqual(effectiveRole(found), ["spoken", "skipped", "speaking", "pending"])
  assert.deepEqual(
    found.slots.map(({ membershipId, skipReason }) => [membershipId, skipReason]),
    [
      [MINA, null],
      [ROOK, "not_schedulable"],
      [IRIS, null],
      [MINA, null],
    ],
  )
})

test("a member with two slots is speaking in one of them", () => {
  const found = look({ round: round(["spoken 5", "pending 5"]), running: run(1, MINA) })

  assert.deepEqual(effectiveRole(found), ["spoken", "speaking"])
})

test("an active round can be paused and skipped, a paused one resumed, a failed one retried", () => {
  const of = (state, more = {}) => look({ state, round: round(["pending 5"], { state }), ...more }).acts

  assert.deepEqual(of("generating", { running: run(0, MINA) }), ["pause", "skip"])
  assert.deepEqual(of("generating", { queued: run(0, MINA) }), ["pause", "skip"])
  assert.deepEqual(of("paused"), ["resume", "skip"])
  assert.deepEqual(of("failed"), ["retry", "skip"])
})

test("a paused round cannot be resumed while a run is active", () => {
  const { acts } = look({
    state: "paused",
    round: round(["pending 5"], { state: "paused" }),
    running: run(0, MINA),
  })

  assert.deepEqual(acts, ["skip"])
})

test("without a round only a queued run can be stopped", () => {
  const forced = run(null, MINA, { round_id: null })

  assert.deepEqual(look({ state: "queued", queued: forced }).acts, ["stop"])
  assert.deepEqual(look({ running: forced }).acts, [])
  assert.deepEqual(look({ state: "idle" }).acts, [])
})

test("the failed slot is marked", () => {
  const found = look({
    state: "failed",
    round: round(["spoken 5", "pending 6", "pending 7"], { state: "failed" }),
  })

  assert.deepEqual(effectiveRole(found), ["spoken", "failed", "pending"])
  assert.equal(found.next, ROOK)
})

test("a run of an older round is finished before the new round", () => {
  const found = look({
    round: round(["pending 6"], { id: "new" }),
    queued: run(0, ROOK, { round_id: "new" }),
    running: run(0, MINA, { round_id: "old" }),
  })

  assert.equal(found.isFinishingFirst, true)
  assert.deepEqual([found.now, found.upcoming], [MINA, [ROOK]])
})

test("members dropped by a newer round are listed, except those who speak in it", () => {
  const before = queue({ round: round(["pending 5", "pending 6", "pending 7"]), running: run(0, MINA) })
  const after = queue({
    state: "queued",
    round: round(["pending 6"], { id: "new" }),
    queued: run(0, ROOK, { round_id: "new" }),
  })

  assert.deepEqual(droppedBy(before, after), [IRIS])
})

test("a round after a complete one drops nobody", () => {
  const before = queue({ round: round(["spoken 5", "pending 6"]), running: run(1, ROOK) })
  const after = queue({ state: "queued", round: round(["pending 5"], { id: "new" }), queued: run(0, MINA) })

  assert.deepEqual(droppedBy(before, after), [])
  assert.deepEqual(droppedBy(before, queue({ state: "idle" })), [])
})

test("dropped members are kept until the conversation is idle", () => {
  const conversation = new OpenConversation({ conversationId: 1 })
  const first = queue({ state: "queued", round: round(["pending 5", "pending 6"]), queued: run(0, MINA) })
  conversation.restore(snapshot({ rev: 1, ...first }))
  const second = { state: "queued", round: round(["pending 5"], { id: "new" }), queued_run: run(0, MINA) }

  conversation.apply({ type: "queue_updated", rev: 2, ...second })
  conversation.apply({
    type: "queue_updated",
    rev: 3,
    ...second,
    state: "generating",
    queued_run: null,
    running_run: run(0, MINA),
  })
  const during = conversation.dropped
  conversation.apply({ type: "queue_updated", rev: 4, state: "idle" })

  assert.deepEqual(during, [ROOK])
  assert.deepEqual(conversation.dropped, [])
})

test("a conversation document is applied unless it is older than the events", () => {
  const conversation = new OpenConversation({ conversationId: 1 })
  conversation.restore(snapshot({ rev: 5 }))

  conversation.refresh({ rev: 4, state: "paused", round: round(["pending 5"], { state: "paused" }) })
  const { state: afterOld } = conversation.queue
  conversation.refresh({ rev: 5, state: "paused", round: round(["pending 5"], { state: "paused" }) })

  assert.deepEqual([afterOld, conversation.queue.state], ["idle", "paused"])
})

// Editing

function draft(slots = ["pending 5", "pending 6", "pending 7"], running = run(0, MINA)) {
  return new RoundDraft(queue({ round: round(slots), running }))
}

test("pending speakers can be moved, removed and added, also twice", () => {
  const it = draft()

  it.move("slot-2", 0)
  it.remove("slot-1")
  it.add(MINA)
  it.add(MINA)

  assert.deepEqual(it.membershipIds, [IRIS, MINA, MINA])
  assert.equal(it.isChanged, true)
})

test("an entry does not move to an index that does not exist", () => {
  const it = draft()

  assert.deepEqual([it.move("slot-1", -1), it.move("slot-2", 2), it.move("slot-9", 0)], [false, false, false])
  assert.equal(it.isChanged, false)
})

test("a speaker that begins leaves the list, the other changes stay", () => {
  const it = draft()
  it.move("slot-2", 0)
  it.add(MINA)

  const what = it.follow(
    queue({ round: round(["spoken 5", "pending 6", "pending 7"]), running: run(1, ROOK) }),
  )

  assert.equal(what, "begun")
  assert.deepEqual(it.membershipIds, [IRIS, MINA])
})

test("the order of another user replaces the draft", () => {
  const it = draft()
  it.add(MINA)

  const what = it.follow(queue({ round: round(["pending 5", "pending 7"]), running: run(0, MINA) }))

  assert.equal(what, "changed")
  assert.deepEqual(it.membershipIds, [IRIS])
})

test("another round ends the draft", () => {
  const it = draft()

  const what = it.follow(queue({ state: "idle" }))

  assert.deepEqual([what, it.isOver, it.membershipIds], ["changed", true, []])
})

test("an event without a change keeps the draft", () => {
  const it = draft()
  it.add(MINA)

  const what = it.follow(
    queue({ round: round(["pending 5", "pending 6", "pending 7"]), running: run(0, MINA) }),
  )

  assert.equal(what, null)
  assert.deepEqual(it.membershipIds, [ROOK, IRIS, MINA])
})

test("a paused round can be edited", () => {
  assert.equal(
    pendingSlots(queue({ round: round(["pending 5", "pending 6"]), queued: run(0, MINA) })).length,
    2,
  )
})

// Auto mode

const SPACE = { auto_mode_enabled: true, auto_mode_max_turns: 5, reply_order: "natural" }

test("auto mode is off, ready, running, blocked by a paused or failed round, or used up", () => {
  const status = (facts) => describeAutoMode({ space: SPACE, turnsLeft: 3, state: "idle", ...facts }).status

  assert.equal(status({ space: { ...SPACE, auto_mode_enabled: false } }), "off")
  assert.equal(status({}), "ready")
  assert.equal(status({ state: "generating" }), "running")
  assert.equal(status({ state: "paused" }), "blocked")
  assert.equal(status({ state: "failed" }), "blocked")
  assert.equal(status({ turnsLeft: 0 }), "used_up")
  assert.equal(status({ space: { ...SPACE, reply_order: "manual" } }), "manual")
})

test("auto mode has all turns left until the server reports a number", () => {
  assert.equal(describeAutoMode({ space: SPACE, turnsLeft: 2, state: "idle" }).left, 2)
  assert.equal(describeAutoMode({ space: SPACE, turnsLeft: null, state: "idle" }).left, 5)
})

// Reasons and times

test("every reason of the server is parsed", () => {
  assert.deepEqual(readSpeakerReason("drew 0.31 ≤ 0.50"), {
    key: "speaker_reason.drew",
    values: { draw: "0.31", most: "0.50" },
  })
  assert.equal(readSpeakerReason('mentioned "Bob"').values.name, "Bob")
  assert.equal(readSpeakerReason("forced by Ann").key, "speaker_reason.forced")
  assert.equal(readSpeakerReason("of its own accord"), null)
})

test("a time of the server is right on a device with a wrong clock", () => {
  const clock = new ServerClock(() => Date.parse("2026-11-21T09:00:00Z"))
  const sentAt = Date.parse("2026-11-21T08:59:59.900Z")

  clock.synchronize({ time: "2026-11-21T10:00:00Z", sentAt, receivedAt: sentAt + 100 })

  assert.equal(clock.now() - Date.parse("2026-11-21T10:00:00Z"), 50)
})

test("a response without a time changes nothing", () => {
  const clock = new ServerClock(() => 1000)

  clock.synchronize({ time: undefined, sentAt: 0, receivedAt: 10 })

  assert.equal(clock.now(), 1000)
})

test("a waiting round has the person, the deadline and no speaker", () => {
  const waiting = { ...round(["spoken 5", "pending 9", "pending 6"], { state: "waiting" }), deadline_at: "2026-01-01T00:00:30Z" }

  const found = look({ state: "waiting", round: waiting })

  assert.deepEqual([found.waitsFor, found.deadline, found.now], [9, "2026-01-01T00:00:30Z", null])
  assert.deepEqual(found.upcoming, [ROOK])
  assert.deepEqual(effectiveRole(found), ["spoken", "next", "pending"])
  assert.deepEqual(found.acts, ["pause", "skip"])
})

test("a paused round waits for no one", () => {
  const found = look({ state: "paused", round: round(["pending 9"], { state: "paused" }) })

  assert.deepEqual([found.waitsFor, found.deadline], [null, null])
})

test("only the person and moderators may skip the turn of a person", () => {
  const waiting = look({ state: "waiting", round: round(["pending 9"], { state: "waiting" }) })
  const may = (membershipId, mayControl, mayModerate) =>
    maySkip(waiting, { membershipId, mayControl, mayModerate })

  assert.deepEqual([may(9, false, false), may(8, true, false), may(8, true, true)], [true, false, true])
})

test("the turn of a character is skipped by those who control the queue", () => {
  const speaking = look({ round: round(["pending 5"]), running: run(0, MINA) })

  const may = (mayControl) => maySkip(speaking, { membershipId: 5, mayControl, mayModerate: false })

  assert.deepEqual([may(true), may(false)], [true, false])
})
