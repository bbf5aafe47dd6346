// The difference of two texts, word by word.
import assert from "node:assert/strict"
import test from "node:test"
import { wordDiff } from "../../static/js/models/summaries/word_diff.js"

// Writes a difference as "same [-removed-] {+added+}".
function drawn(before, after, maxCells) {
  const marks = { same: ["", ""], removed: ["[-", "-]"], added: ["{+", "+}"] }
  const parts = wordDiff(before, after, maxCells)
  return parts.map(({ kind, text }) => marks[kind][0] + text + marks[kind][1]).join("")
}

test("changed words are reported in place, removed ones before added ones", () => {
  assert.equal(drawn("Ann has a dog.", "Ann has a cat."), "Ann has a [-dog-]{+cat+}.")
  assert.equal(drawn("a b c d", "a x y d"), "a [-b c -]{+x y +}d")
  assert.equal(drawn("one two", "zero one two"), "{+zero +}one two")
  assert.equal(drawn("one two three", "one three"), "one [-two -]three")
  assert.equal(drawn("a a a", "a a"), "a a[- a-]")
  assert.equal(drawn("At home at night. She", "At home. She"), "At home[- at night-]. She")
  assert.equal(drawn("x At home at night. She", "y At home. She"), "[-x -]{+y +}At home[- at night-]. She")
})

test("equal and empty texts have no differences, or one", () => {
  assert.deepEqual(wordDiff("same text", "same text"), [{ kind: "same", text: "same text" }])
  assert.deepEqual(wordDiff("", ""), [])
  assert.deepEqual(wordDiff("", "new"), [{ kind: "added", text: "new" }])
  assert.deepEqual(wordDiff("old", ""), [{ kind: "removed", text: "old" }])
})

test("white space alone is no difference, and the later text is kept as it is", () => {
  assert.deepEqual(wordDiff("  a  b", "a\nb"), [
    { kind: "removed", text: "  " },
    { kind: "same", text: "a\nb" },
  ])
  const after = "  First line,\n\nsecond – 第二行。 end "
  const parts = wordDiff("First line, third 第三行。", after)
  assert.equal(parts.filter(({ kind }) => kind !== "removed").map(({ text }) => text).join(""), after)
})

test("Chinese is compared by characters", () => {
  assert.equal(drawn("安有一只狗。", "安有一只猫。"), "安有一只[-狗-]{+猫+}。")
  assert.equal(drawn("安说 hello了", "安说 hi了"), "安说 [-hello-]{+hi+}了")
})

test("texts that differ in too many words are reported as a whole, between their common parts", () => {
  assert.equal(drawn("start a b c end", "start x b y end", 15), "start [-a b c -]{+x b y +}end")
  assert.equal(drawn("start a b end", "start x b end", 15), "start [-a -]{+x +}b end")
})

test("two of the longest possible texts are compared", () => {
  const text = (word) => Array.from({ length: 1600 }, (_, i) => (i % 2 ? word : `w${i % 7}`)).join(" ")

  const parts = wordDiff(text("old"), text("new"))

  assert.ok(parts.length > 1000)
  assert.equal(parts.filter(({ kind }) => kind !== "removed").map((it) => it.text).join(""), text("new"))
})
