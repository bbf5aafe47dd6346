// The director: slots and runs without a member, the round that a user edits, and the reasons.
import assert from "node:assert/strict"
import test from "node:test"
import { readSpeakerReason } from "../../static/js/models/queue/speaker_reason.js"
import { DIRECTOR, droppedBy } from "../../static/js/models/queue/queue.js"
import OpenConversation from "../../static/js/models/conversation/open_conversation.js"
import { explainSpeakerReason } from "../../static/js/views/components/error_messages.js"
import RoundDraft from "../../static/js/models/queue/round_draft.js"
import { look, queue, run } from "./queue_support.mjs"
import { snapshot } from "./support.mjs"

const ROOK = 6
const IRIS = 7

// The memberships of the pending slots; null: the director chooses.
function round(members, { id = "q" } = {}) {
  const slots = members.map((membership_id, position) => ({
    position,
    membership_id,
    status: "pending",
    skip_reason: null,
    chosen_because: membership_id === null ? "director chooses" : `reason ${position}`,
  }))
  return { id, status: "active", state: "generating", cursor: 0, trigger_message_id: 1, slots }
}

test("a slot without a member is that of the director, queued, running and in the round", () => {
  const undecided = round([null])

  const queued = look({ state: "queued", round: undecided, queued: run(0, null) })
  const choosing = look({ round: undecided, running: run(0, null) })
  const generated = look({ state: "queued", queued: run(null, null, { round_id: null }) })

  assert.deepEqual([queued.now, queued.next, queued.upcoming], [null, DIRECTOR, []])
  assert.deepEqual([choosing.isSpeaking, choosing.now, choosing.next], [true, DIRECTOR, null])
  assert.deepEqual([choosing.slots[0].membershipId, choosing.slots[0].state], [DIRECTOR, "speaking"])
  assert.deepEqual([generated.next, generated.upcoming], [DIRECTOR, []])
})

test("the director's choice replaces its slot by the chosen speakers", () => {
  const chosen = look({
    round: round([ROOK, IRIS]),
    running: run(0, ROOK, { chosen_because: "director: Rook was asked" }),
  })

  assert.deepEqual([chosen.now, chosen.reason, chosen.upcoming], [ROOK, "director: Rook was asked", [IRIS]])
})

test("a private run does not show that the director chooses", () => {
  const running = { id: "a", private: true, round_id: undefined }

  assert.equal(look({ running }).now, null)
})

test("a dropped slot of the director is not reported as that of a member", () => {
  const before = queue({ round: round([null]) })
  const after = queue({ round: round([ROOK], { id: "r" }), queued: run(0, ROOK, { round_id: "r" }) })

  assert.deepEqual(droppedBy(before, after), [])
})

test("the slot of the director can be moved and removed in a draft", () => {
  const draft = new RoundDraft(queue({ round: round([null, ROOK]), queued: run(0, null) }))

  draft.move("slot-0", 1)
  assert.deepEqual([draft.membershipIds, draft.isChanged], [[ROOK, null], true])
  draft.remove("slot-0")
  draft.remove("slot-1")
  assert.deepEqual([draft.membershipIds, draft.isChanged], [[], true])
})

test("a draft with only the director's slot is changed by its removal", () => {
  const draft = new RoundDraft(queue({ round: round([null]), queued: run(0, null) }))

  assert.equal(draft.isChanged, false)
  draft.remove("slot-0")

  assert.equal(draft.isChanged, true)
})

test("a run whose speaker is not chosen yet has no stream", () => {
  const running_run = { id: "a", round_id: null, slot_position: null, speaker_space_membership_id: null }
  const conversation = new OpenConversation({ conversationId: 7 })

  conversation.restore(snapshot({ rev: 1, running_run }))

  assert.equal(conversation.stream, null)
})

test("the reasons of the director are explained, with the rule that chose in its place", () => {
  assert.deepEqual(readSpeakerReason("director: Bob was asked"), {
    key: "speaker_reason.director_because",
    values: { reason: "Bob was asked" },
  })
  assert.equal(readSpeakerReason("director").key, "speaker_reason.director")
  assert.equal(readSpeakerReason("director chooses").key, "speaker_reason.director_chooses")
  assert.deepEqual(readSpeakerReason("director failed (timeout): next in rotation"), {
    key: "speaker_reason.director_timeout",
    values: { instead: "next in rotation" },
  })
  assert.equal(
    explainSpeakerReason("director failed (call_failed): next in rotation"),
    "the request to the director failed; next in rotation",
  )
})
