// Mentions in the composer: when the list opens, who fits, and which ids the post carries.
import assert from "node:assert/strict"
import test from "node:test"
import { insertMention, matching, mentionedIds, queryAt } from "../../static/js/models/conversation/mentions.js"
import { likely } from "../../static/js/models/queue/next_speaker.js"

const at = (text) => queryAt(text, text.length)

test("an @ opens the list, also after Chinese, but not in an address", () => {
  assert.deepEqual(at("@"), { start: 0, query: "" })
  assert.deepEqual(at("Hi @Sir Lan"), { start: 3, query: "Sir Lan" })
  assert.deepEqual(at("你好@孙"), { start: 2, query: "孙" })
  for (const text of ["ann@exam", "a.b@", "no mention", "@ ", "@a\nb"]) assert.equal(at(text), null, text)
  assert.deepEqual(queryAt("@Bo, hi", 3), { start: 0, query: "Bo" })
})

const member = (id, display_name, aliases = []) => ({ id, display_name, aliases })
const MEMBERS = [member(1, "Sir Lancelot"), member(2, "Ann"), member(3, "孙悟空"), member(4, "Lena", ["Captain"])]
const names = (query) => matching(MEMBERS, query).map(({ id }) => id)

test("members are found by any part of their name, by its beginning first", () => {
  assert.deepEqual(names("lan"), [1])
  assert.deepEqual(names("l"), [4, 1])
  assert.deepEqual(names("Sir L"), [1])
  assert.deepEqual(names("悟空"), [3])
  assert.deepEqual(names("capt"), [4])
  assert.deepEqual(names(""), [1, 2, 3, 4])
  assert.deepEqual(names("zoe"), [])
})

test("a chosen name replaces the query", () => {
  const text = "Hi @lan, look"
  const { text: after, caret } = insertMention(text, queryAt(text, 7), "Sir Lancelot")

  assert.equal(after, "Hi @Sir Lancelot, look")
  assert.equal(after.slice(0, caret), "Hi @Sir Lancelot")
})

test("a post carries the ids of the chosen names that are still in the text, in its order", () => {
  const chosen = [
    { id: 2, name: "Ann" },
    { id: 1, name: "Sir Lancelot" },
    { id: 7, name: "Ann" },
  ]

  assert.deepEqual(mentionedIds("@Sir Lancelot and @Ann, and @Ann", chosen), [1, 2, 7])
  assert.deepEqual(mentionedIds("@Ann", chosen), [2])
  assert.deepEqual(mentionedIds("Nobody.", chosen), [])
})

test("the preview shows who may speak, the most likely first", () => {
  const odds = [
    { membership_id: 1, probability: 0 },
    { membership_id: 2, probability: 0.25 },
    { membership_id: 3, probability: 0.75 },
    { membership_id: 4, probability: 0.25 },
  ]

  assert.deepEqual(
    likely({ odds }).map(({ membership_id: id }) => id),
    [3, 2, 4],
  )
})
