// Help with one's own words: suggestions on their way, and the copilot of one's seat.
import assert from "node:assert/strict"
import test from "node:test"
import { readReason } from "../../static/js/models/queue/speaker_reason.js"
import { describeCopilot, locksComposer } from "../../static/js/models/conversation/copilot.js"
import { may } from "../../static/js/models/members/rights.js"
import Suggestions from "../../static/js/models/conversation/copilot_candidates.js"

const candidate = (index, text, generation_id = "g") => ({ generation_id, index, text })
const error = (index, code, generation_id = "g") => ({ generation_id, index, error: { code } })
const texts = ({ entries }) => entries.map(({ text }) => text)

function asked(count) {
  const suggestions = new Suggestions()
  suggestions.begun(suggestions.begin(count), "g")
  return suggestions
}

test("suggestions come in any order and take their own places", () => {
  const suggestions = asked(3)

  suggestions.take(candidate(2, "c"))
  suggestions.take(candidate(0, "a"))
  suggestions.take(error(1, "upstream_error"))

  assert.deepEqual(texts(suggestions), ["a", null, "c"])
  assert.equal(suggestions.entries[1].error.code, "upstream_error")
  assert.equal(suggestions.isWaiting, false)
})

test("what is told before the answer to the wish is kept for it", () => {
  const suggestions = new Suggestions()
  const ticket = suggestions.begin(2)

  suggestions.take(candidate(0, "mine"))
  suggestions.take(candidate(1, "another's", "h"))
  suggestions.begun(ticket, "g")

  assert.deepEqual(texts(suggestions), ["mine", null])
})

test("a newer wish takes the place of the older one, whose answer comes too late", () => {
  const suggestions = new Suggestions()
  const older = suggestions.begin(1)
  const newer = suggestions.begin(2)
  suggestions.begun(newer, "g")

  suggestions.begun(older, "h")
  suggestions.refused(older)
  suggestions.take(candidate(0, "old", "h"))
  suggestions.take(candidate(1, "new"))

  assert.deepEqual(texts(suggestions), [null, "new"])
})

test("a wish that was refused, and one that was closed, leave nothing", () => {
  const suggestions = new Suggestions()
  suggestions.refused(suggestions.begin(1))
  assert.equal(suggestions.isEmpty, true)

  const closed = asked(1)
  closed.clear()
  assert.equal(closed.take(candidate(0, "late")), false)
  assert.equal(closed.isEmpty, true)
})

test("what was under way when the line was lost is said to be lost, and no more", () => {
  const suggestions = asked(2)
  suggestions.take(candidate(0, "here"))

  suggestions.lose({ code: "network" })

  assert.deepEqual(texts(suggestions), ["here", null])
  assert.equal(suggestions.entries[1].error.code, "network")
})

const seat = (over = {}) => ({
  copilot_mode: "full",
  copilot_remaining_steps: 3,
  copilot_conversation_id: 7,
  ...over,
})

test("the composer is locked while the AI speaks for me here, and only then", () => {
  const look = (its, state) => {
    const copilot = describeCopilot({ seat: its, conversationId: 7, state })
    return [copilot.status, locksComposer(copilot)]
  }

  assert.deepEqual(look(seat(), "generating"), ["going", true])
  assert.deepEqual(look(seat(), "idle"), ["resting", true])
  assert.deepEqual(look(seat(), "failed"), ["held", true])
  assert.deepEqual(look(seat({ copilot_conversation_id: 8 }), "idle"), ["elsewhere", false])
  assert.deepEqual(look(seat({ copilot_mode: "none" }), "idle"), ["off", false])
  assert.deepEqual(look(null, "idle"), ["off", false])
})

test("the reason of a copilot's run is known again", () => {
  assert.deepEqual(readReason("copilot, steps left: 2"), { key: "speaker_reason.copilot", values: { n: 2 } })
})

test("a guest is not offered suggestions", () => {
  assert.equal(may("guest", "suggest"), false)
  assert.equal(may("member", "suggest"), true)
})
