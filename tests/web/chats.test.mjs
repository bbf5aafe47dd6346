// Chat files, addresses of messages, and the window around a message.
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import test from "node:test"
import { isDocument, looksLikeChat, preview, matchMembers } from "../../static/js/models/files/chat_file.js"
import MessageWindow from "../../static/js/models/conversation/message_window.js"
import { parse, paths } from "../../static/js/router.js"

// A file with the methods that a preview needs.
const file = (name, bytes) => ({ name, stream: () => new Blob([bytes]).stream() })
const fixture = (name) => file(name, readFileSync(new URL(`../fixtures/chats/${name}`, import.meta.url)))
const membership = (id, kind, name, more = {}) => ({
  id,
  kind,
  display_name: name,
  aliases: [],
  status: "active",
  ...more,
})

test("a preview counts the messages of every name", async () => {
  const { n, names } = await preview(fixture("group.jsonl"))

  assert.equal(n, 4)
  assert.deepEqual(names[0], { name: "Ada", isUser: false, n: 2 })
  assert.deepEqual(names.map(({ name }) => name).sort(), ["Ada", "Bo", "Kai"])
})

test("a preview accepts what the server accepts", async () => {
  for (const [name, n] of [
    ["bom_crlf.jsonl", 2],
    ["no_header.jsonl", 2],
    ["chub_nested.jsonl", 3],
    ["halves.jsonl", 2],
  ])
    assert.equal((await preview(fixture(name))).n, n, name)
  assert.equal((await preview(file("x.jsonl", "noise\n".repeat(1000)))).n, 0)
})

test("names are matched with memberships like on the server", () => {
  const roster = [
    membership(1, "human", "Ann"),
    membership(2, "character", "Ada", { status: "removed" }),
    membership(3, "character", "Ada", { aliases: ["The Countess"] }),
  ]
  const name = (text, isUser = false) => ({ name: text, isUser })

  const memberships = matchMembers(
    [name("ada"), name("the countess"), name("Kai", true), name("Lu", true), name("Zoe")],
    roster,
    1,
  )

  assert.deepEqual(memberships, [3, 3, 1, "new", "new"])
})

test("a chat is detected by its name or its first line", () => {
  assert.ok(looksLikeChat({ name: "Evening.JSONL" }))
  assert.ok(looksLikeChat({ name: "x.txt" }, '{"user_name":"A","chat_metadata":{}}\n{}'))
  assert.ok(looksLikeChat({ name: "x.txt" }, '{"name":"A","is_user":true,"mes":"Hi."}'))
  assert.ok(!looksLikeChat({ name: "card.json" }, '{"spec":"chara_card_v2","data":{}}'))
})

test("a chat of another program is recognized by its content and left to the server", () => {
  const chats = [
    { type: "risuChat", data: { message: [] } },
    { gamestarted: true, prompt: "", actions: [] },
    { internal: [], visible: [] },
    { histories: { histories: [] } },
    [{ turns: [] }],
    { messages: [{ msg: "Hi." }] },
  ]
  for (const json of chats) {
    assert.ok(looksLikeChat({ name: "x.json" }, "", json), JSON.stringify(json))
    assert.ok(isDocument(json))
  }
  for (const json of [null, 7, [], { name: "Ada", description: "x" }, { entries: {} }]) {
    assert.ok(!looksLikeChat({ name: "x.json" }, "", json), JSON.stringify(json))
  }
  assert.ok(!isDocument({ mes: "Hi." }))
  assert.ok(!isDocument(null))
})

test("an address can contain a message", () => {
  assert.deepEqual(parse("/c/7", "#m-12"), { name: "conversation", conversationId: 7, messageId: 12 })
  assert.deepEqual(parse("/c/7", "#m-x"), { name: "conversation", conversationId: 7 })
  assert.deepEqual(parse("/settings/keys", "#m-12"), { name: "settings", part: "keys" })
  assert.equal(paths.message(7, 12), "/c/7#m-12")
})

test("the window around a message contains it and is limited", () => {
  const view = new MessageWindow()
  view.reset(1000)

  for (const index of [0, 3, 500, 999]) {
    view.around(index)
    assert.ok(view.start <= index && index < view.end && view.end - view.start <= 240, `${index}`)
  }
  assert.ok(view.isAtEnd)
})
