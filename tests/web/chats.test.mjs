// Chat files, addresses of messages, and the window around a message.
import assert from "node:assert/strict"
import test from "node:test"
import { chosenNames } from "../../static/js/models/files/chat_authors.js"
import { looksLikeChat } from "../../static/js/models/files/chat_file.js"
import MessageWindow from "../../static/js/models/conversation/message_window.js"
import { parse, paths } from "../../static/js/router.js"

test("changed assignments are sent with those of all people", () => {
  const author = (name, isUser, assigned, value = assigned) => ({ name, isUser, assigned, value })

  assert.deepEqual(chosenNames([author("Ada", false, "3"), author("Kai", true, "1")]), {})
  assert.deepEqual(
    chosenNames([author("Ada", false, "3", "new"), author("Bo", false, "4"), author("Kai", true, "1"), author("Lu", true, "new")]),
    { Kai: 1, Lu: "new", Ada: "new" },
  )
  assert.deepEqual(
    chosenNames([author("Ada", false, "3"), author("Ada", true, "1"), author("Bo", false, "4", "5")]),
    { Bo: 5 },
    "a choice for a person of the same name would apply to the character",
  )
})

test("a chat is detected by its name or its first line", () => {
  assert.ok(looksLikeChat({ name: "Evening.JSONL" }))
  assert.ok(looksLikeChat({ name: "x.txt" }, '{"user_name":"A","chat_metadata":{}}\n{}'))
  assert.ok(looksLikeChat({ name: "x.txt" }, '{"name":"A","is_user":true,"mes":"Hi."}'))
  assert.ok(!looksLikeChat({ name: "card.json" }, '{"spec":"chara_card_v2","data":{}}'))
})

test("a chat of another program is recognized by its content", () => {
  const chats = [
    { type: "risuChat", data: { message: [] } },
    { gamestarted: true, prompt: "", actions: [] },
    { internal: [], visible: [] },
    { histories: { histories: [] } },
    [{ turns: [] }],
    { messages: [{ msg: "Hi." }] },
  ]
  for (const json of chats) assert.ok(looksLikeChat({ name: "x.json" }, "", json), JSON.stringify(json))
  for (const json of [null, 7, [], { name: "Ada", description: "x" }, { entries: {} }]) {
    assert.ok(!looksLikeChat({ name: "x.json" }, "", json), JSON.stringify(json))
  }
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
