// Suggested replies and the copilot of the user's membership.
import assert from "node:assert/strict"
import test from "node:test"
import { readSpeakerReason } from "../../static/js/models/queue/speaker_reason.js"
import { describeCopilot, locksComposer } from "../../static/js/models/conversation/copilot.js"
import { may } from "../../static/js/models/members/rights.js"
import CopilotCandidates from "../../static/js/models/conversation/copilot_candidates.js"

const candidate = (index, text, generation_id = "g") => ({ generation_id, index, text })
const error = (index, code, generation_id = "g") => ({ generation_id, index, error: { code } })
const texts = ({ entries }) => entries.map(({ text }) => text)

function requested(count) {
  const candidates = new CopilotCandidates()
  candidates.started(candidates.start(count), "g")
  return candidates
}

test("candidates arrive in any order and are stored by index", () => {
  const candidates = requested(3)

  candidates.apply(candidate(2, "c"))
  candidates.apply(candidate(0, "a"))
  candidates.apply(error(1, "upstream_error"))

  assert.deepEqual(texts(candidates), ["a", null, "c"])
  assert.equal(candidates.entries[1].error.code, "upstream_error")
  assert.equal(candidates.isPending, false)
})

test("events that arrive before the response are kept for it", () => {
  const candidates = new CopilotCandidates()
  const ticket = candidates.start(2)

  candidates.apply(candidate(0, "mine"))
  candidates.apply(candidate(1, "another's", "h"))
  candidates.started(ticket, "g")

  assert.deepEqual(texts(candidates), ["mine", null])
})

test("a newer request replaces an older one, whose response is ignored", () => {
  const candidates = new CopilotCandidates()
  const older = candidates.start(1)
  const newer = candidates.start(2)
  candidates.started(newer, "g")

  candidates.started(older, "h")
  candidates.failed(older)
  candidates.apply(candidate(0, "old", "h"))
  candidates.apply(candidate(1, "new"))

  assert.deepEqual(texts(candidates), [null, "new"])
})

test("a refused or closed request leaves no candidates", () => {
  const candidates = new CopilotCandidates()
  candidates.failed(candidates.start(1))
  assert.equal(candidates.isEmpty, true)

  const closed = requested(1)
  closed.clear()
  assert.equal(closed.apply(candidate(0, "late")), false)
  assert.equal(closed.isEmpty, true)
})

test("candidates that are pending when the connection is lost fail", () => {
  const candidates = requested(2)
  candidates.apply(candidate(0, "here"))

  candidates.failPending({ code: "network" })

  assert.deepEqual(texts(candidates), ["here", null])
  assert.equal(candidates.entries[1].error.code, "network")
})

const membership = (over = {}) => ({
  copilot_mode: "full",
  copilot_remaining_steps: 3,
  copilot_conversation_id: 7,
  ...over,
})

test("the composer is locked only while the copilot is active in this conversation", () => {
  const look = (its, state) => {
    const copilot = describeCopilot({ membership: its, conversationId: 7, state })
    return [copilot.status, locksComposer(copilot)]
  }

  assert.deepEqual(look(membership(), "generating"), ["running", true])
  assert.deepEqual(look(membership(), "idle"), ["waiting", true])
  assert.deepEqual(look(membership(), "failed"), ["blocked", true])
  assert.deepEqual(look(membership({ copilot_conversation_id: 8 }), "idle"), ["elsewhere", false])
  assert.deepEqual(look(membership({ copilot_mode: "none" }), "idle"), ["off", false])
  assert.deepEqual(look(null, "idle"), ["off", false])
})

test("the reason of a copilot's run is parsed", () => {
  assert.deepEqual(readSpeakerReason("copilot, steps left: 2"), { key: "speaker_reason.copilot", values: { n: 2 } })
})

test("a guest is not offered candidates", () => {
  assert.equal(may("guest", "suggest"), false)
  assert.equal(may("member", "suggest"), true)
})
