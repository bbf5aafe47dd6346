// Rows of the timeline: groups, the window, emphasis, avatars, cards, rights.
import assert from "node:assert/strict"
import test from "node:test"
import { hue, initials } from "../../static/js/models/members/avatar.js"
import { readCard } from "../../static/js/models/characters/card.js"
import { lines, splitParagraphs } from "../../static/js/models/message/emphasis.js"
import { group } from "../../static/js/models/conversation/message_grouping.js"
import MessageWindow from "../../static/js/models/conversation/message_window.js"
import { may } from "../../static/js/models/members/rights.js"
import { rows } from "../../static/js/models/conversation/timeline_rows.js"
import OpenConversation from "../../static/js/models/conversation/open_conversation.js"
import { languageOf } from "../../static/js/models/message/text_language.js"
import { message, snapshot } from "./support.mjs"

const MINUTE = 60_000

test("messages of one author within five minutes are one group", () => {
  const found = group([
    { authorId: 1, at: 0 },
    { authorId: 1, at: 5 * MINUTE },
    { authorId: 1, at: 11 * MINUTE },
    { authorId: 2, at: 11 * MINUTE },
  ])

  assert.deepEqual(
    found.map(({ startsGroup }) => startsGroup),
    [true, false, true, true],
  )
})

test("a new day begins a group", () => {
  const midnight = new Date(2026, 0, 2).getTime()

  const [, second] = group([
    { authorId: 1, at: midnight - MINUTE },
    { authorId: 1, at: midnight + MINUTE },
  ])

  assert.deepEqual(second, { startsDay: true, startsGroup: true })
})

test("the end of the summary is marked between two messages of which both are loaded", () => {
  const conversation = new OpenConversation({ conversationId: 1 })
  const messages = [5, 6, 7, 8].map((seq) => message({ id: seq, seq }))
  conversation.restore(snapshot({ messages, rev: 1, summarized_to_seq: 6 }))
  const kinds = (window = {}) =>
    rows({ conversation, entries: [], myMembershipId: 1, now: 0, ...window }).map((it) => it.message?.seq ?? it.kind)

  assert.deepEqual(kinds(), ["day", 5, 6, "summary", 7, 8])
  assert.deepEqual(kinds({ start: 2 }), ["summary", 7, 8])
  assert.deepEqual(kinds({ start: 3 }), [8])
  for (const seq of [4, 8]) {
    assert.equal(conversation.applySummary({ level: 1, to_seq: seq, is_usable: true }), "summary")
    assert.deepEqual(kinds(), ["day", 5, 6, 7, 8], `${seq}`)
  }
  assert.equal(conversation.applySummary({ level: 0, to_seq: 6, is_usable: true }), null)
  assert.equal(conversation.applySummary({ level: 1, to_seq: 6, is_usable: false }), "summary")
  assert.equal(conversation.summarizedTo, null)
  assert.equal(conversation.applySummary(null), null)
})

test("at most 240 messages are shown", () => {
  const view = new MessageWindow()
  view.reset(1000)

  view.showOlder()

  assert.ok(view.end - view.start <= 240)
  assert.equal(view.isAtEnd, false)
})

test("the window follows the end until the user scrolls up", () => {
  const view = new MessageWindow()
  view.reset(10)
  view.resize(12)
  const followed = view.end

  view.reset(1000)
  view.showOlder()
  const { end } = view
  view.resize(1001)

  assert.equal(followed, 12)
  assert.equal(view.end, end)
})

test("added older messages keep the window on the same messages", () => {
  const view = new MessageWindow()
  view.reset(50)

  view.prepended(60)

  assert.deepEqual([view.start, view.end], [60, 110])
})

test("emphasis is found, and an unmatched mark is shown as it is", () => {
  assert.deepEqual(lines("a *b* **c** _d_ *e"), [
    [
      { text: "a ", mark: null },
      { text: "b", mark: "em" },
      { text: " ", mark: null },
      { text: "c", mark: "strong" },
      { text: " ", mark: null },
      { text: "d", mark: "em" },
      { text: " *e", mark: null },
    ],
  ])
})

test("underscores inside a word are not emphasis", () => {
  assert.deepEqual(lines("snake_case_name"), [[{ text: "snake_case_name", mark: null }]])
})

test("underscores do not end emphasis with asterisks", () => {
  assert.deepEqual(lines("*set A_B_C.* _a*b_ A_B *c* D_E"), [
    [
      { text: "set A_B_C.", mark: "em" },
      { text: " ", mark: null },
      { text: "a*b", mark: "em" },
      { text: " A_B ", mark: null },
      { text: "c", mark: "em" },
      { text: " D_E", mark: null },
    ],
  ])
})

test("empty lines separate paragraphs", () => {
  assert.deepEqual(splitParagraphs("a\nb\n\n\nc"), ["a\nb", "c"])
})

test("the language of a text is guessed by its script", () => {
  assert.equal(languageOf("*推开门* “老板，Marlo！”"), "zh")
  assert.equal(languageOf("宿は空いていますか"), "ja")
  assert.equal(languageOf("방 있어요?"), "ko")
  assert.equal(languageOf("Is there a conversation? Un cuarto?"), "")
  assert.equal(languageOf("The pen is pointing at 小安."), "")
  assert.equal(languageOf(""), "")
})

test("initials are those of the first and the last word", () => {
  assert.equal(initials("Ann Mary Lee"), "AL")
  assert.equal(initials("rook"), "R")
  assert.equal(initials("👩‍🚀 Vega"), "👩‍🚀V")
  assert.equal(initials(""), "?")
})

test("a name always has the same hue", () => {
  assert.equal(hue("Mina"), hue("Mina"))
  assert.ok(hue("Mina") >= 0 && hue("Mina") < 12)
})

test("a card shows its name and greeting before it is stored", () => {
  const card = {
    spec: "chara_card_v2",
    data: { name: " Sera ", description: "A guardian", first_mes: "Hello." },
  }

  const found = readCard(JSON.stringify(card))

  assert.deepEqual(found, { card, name: "Sera", description: "A guardian", greeting: "Hello." })
})

test("an invalid card has a reason", () => {
  assert.deepEqual(readCard("{"), { problem: "json" })
  assert.deepEqual(readCard("[1]"), { problem: "card" })
  assert.deepEqual(readCard("{}"), { problem: "name" })
})

test("a guest may not generate", () => {
  assert.equal(may("guest", "generate"), false)
  assert.equal(may("member", "generate"), true)
  assert.equal(may("admin", "delete_space"), true)
  assert.equal(may(null, "generate"), false)
})

test("pending messages are shown before the stream", () => {
  const conversation = new OpenConversation({ conversationId: 1 })
  conversation.restore(
    snapshot({
      messages: [message({ seq: 1 })],
      rev: 1,
      stream: { run_id: "r", membership_id: 2, text: "" },
    }),
  )

  const found = rows({
    conversation,
    entries: [{ clientId: "abc", content: "x", createdAt: 2000, state: "pending" }],
    myMembershipId: 1,
    now: 3000,
    end: 1,
  })

  assert.deepEqual(
    found.map(({ kind }) => kind),
    ["day", "message", "pending", "stream"],
  )
})

test("the unread mark is before the first unread message of another author", () => {
  const conversation = new OpenConversation({ conversationId: 1 })
  conversation.restore(
    snapshot({
      messages: [
        message({ seq: 1 }),
        message({ seq: 2, author: 9 }),
        message({ seq: 3 }),
        message({ seq: 4, author: 9 }),
      ],
      rev: 4,
    }),
  )

  const found = rows({ conversation, entries: [], myMembershipId: 9, now: 0, end: 4, unreadAfter: 1 })

  assert.deepEqual(
    found.map(({ kind, seq }) => seq ?? kind),
    ["day", 1, 2, "unread", 3, 4],
  )
})

test("a message before the window determines the day but is not shown", () => {
  const conversation = new OpenConversation({ conversationId: 1 })
  conversation.restore(snapshot({ messages: [message({ seq: 1 }), message({ seq: 2 })], rev: 2 }))

  const found = rows({ conversation, entries: [], myMembershipId: 9, now: 0, start: 1, end: 2 })

  assert.deepEqual(
    found.map(({ kind, startsGroup }) => [kind, startsGroup]),
    [["message", false]],
  )
})
