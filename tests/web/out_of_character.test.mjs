// Messages that are out of character, and slow mode.
import assert from "node:assert/strict"
import test from "node:test"
import SlowMode from "../../static/js/models/conversation/slow_mode.js"
import Timeline from "../../static/js/models/conversation/timeline.js"
import { isOoc, isOocText, mayBeOoc } from "../../static/js/models/message/out_of_character.js"

test("a text in double parentheses is out of character", () => {
  for (const text of ["((brb))", " \n((brb :) ))\t", "((f(g(x))))"]) assert.equal(isOocText(text), true, text)
  for (const text of ["(brb)", "((brb)) she said", "((a)) b ((c))", "(()", ""])
    assert.equal(isOocText(text), false, text)
})

test("the mark of a pending message takes precedence over its text", () => {
  assert.equal(isOoc({ entry: { content: "Hi.", fields: { is_ooc: true } } }), true)
  assert.equal(isOoc({ entry: { content: "((Hi.))", fields: { is_ooc: false } } }), false)
  assert.equal(isOoc({ entry: { content: "((Hi.))" } }), true)
  assert.equal(isOoc({ message: { content: "((Hi.))", is_ooc: false } }), false)
})

test("only messages that people wrote can be out of character", () => {
  assert.equal(mayBeOoc({ role: "user", conversation_run_id: null }), true)
  assert.equal(mayBeOoc({ role: "user", conversation_run_id: "r" }), false)
  assert.equal(mayBeOoc({ role: "assistant", conversation_run_id: null }), false)
})

test("the newest message is read past messages that are out of character", () => {
  const timeline = new Timeline()
  timeline.reset([
    { id: 1, seq: 1, rev: 1, visibility: "normal", is_ooc: false },
    { id: 2, seq: 2, rev: 2, visibility: "normal", is_ooc: true },
  ])

  assert.equal(timeline.tail.id, 1)
})

const MEMBER = { id: 5, role: "member" }
const SPACE = { id: 1, slow_mode_s: 30 }
const at = (ms) => new Date(ms).toISOString()
const post = (fields) => ({ space_membership_id: 5, role: "user", conversation_run_id: null, ...fields })

test("a member waits after the newest post, in all conversations of the space", () => {
  const slowMode = new SlowMode()
  const messages = [post({ created_at: at(1000) }), post({ created_at: at(9000), conversation_run_id: "r" })]

  assert.equal(slowMode.until(SPACE, MEMBER, messages), 31_000)
  slowMode.posted(1, 4000)
  assert.equal(slowMode.until(SPACE, MEMBER, messages), 34_000)
  assert.equal(slowMode.until({ id: 2, slow_mode_s: 30 }, MEMBER, []), 0)
})

test("the wait that the server names counts, and owners and moderators do not wait", () => {
  const slowMode = new SlowMode()
  slowMode.posted(1, 1000)
  slowMode.refused(1, 50_000)

  assert.equal(slowMode.until(SPACE, MEMBER, []), 50_000)
  for (const role of ["owner", "moderator"]) assert.equal(slowMode.until(SPACE, { id: 5, role }, []), 0)
  assert.equal(slowMode.until({ id: 1, slow_mode_s: 0 }, MEMBER, []), 0)
})
