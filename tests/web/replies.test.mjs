// Tests of quotations, reactions and bookmarks.
import { test } from "node:test"
import assert from "node:assert/strict"
import BookmarkActions from "../../static/js/actions/bookmarks.js"
import OpenConversation from "../../static/js/models/conversation/open_conversation.js"
import Outbox from "../../static/js/models/conversation/outbox.js"
import { isTargetGone, quoteOf } from "../../static/js/models/conversation/quote.js"
import { findEmoji } from "../../static/js/models/message/emoji.js"
import {
  describeReactions,
  hasReacted,
  recentEmoji,
  rememberEmoji,
} from "../../static/js/models/message/reactions.js"

function memory() {
  const items = new Map()
  return {
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => items.set(key, value),
    removeItem: (key) => items.delete(key),
  }
}

function message(id, fields = {}) {
  return {
    id, seq: id, rev: id, conversation_id: 1, space_membership_id: 1, author_name: "Ann", content: `Text ${id}`,
    visibility: "normal", reply_to: null, reactions: [], created_at: "2026-11-28T10:00:00Z", ...fields,
  }
}

function opened(messages) {
  const conversation = new OpenConversation({ conversationId: 1 })
  conversation.restore({ rev: 10, snapshot: { reset: true, messages, state: "idle", presence: [] } })
  return conversation
}

test("a quotation is the first 200 characters in one line", () => {
  assert.equal(quoteOf(message(1, { content: "\na\r\nb\nc" })).excerpt, "a b c")
  assert.equal([...quoteOf(message(1, { content: "😀".repeat(300) })).excerpt].length, 200)
})

test("a reply shows when its target is edited or deleted", () => {
  const first = message(1)
  const conversation = opened([first, message(2, { reply_to: quoteOf(first) })])
  const quote = () => conversation.timeline.byId(2).reply_to

  conversation.apply({ type: "message_updated", rev: 11, message: { ...first, rev: 11, content: "New" } })
  assert.deepEqual([quote().excerpt, quote().hidden], ["New", false])
  conversation.apply({ type: "message_hidden", rev: 12, message: { id: 1, seq: 1, visibility: "hidden", rev: 12 } })
  assert.deepEqual([quote().excerpt, quote().hidden], ["", true])
})

test("a quotation above the composer disappears with its message", () => {
  const conversation = opened([message(1)])
  conversation.replyTo = quoteOf(message(1))

  conversation.apply({ type: "message_hidden", rev: 11, message: { id: 1, seq: 1, visibility: "hidden", rev: 11 } })

  assert.equal(conversation.replyTo, null)
})

test("a refused reply can be sent again without its quotation", () => {
  const outbox = new Outbox(memory(), "a")
  outbox.add("c", "Hi", 0, { replyTo: quoteOf(message(1)) })
  outbox.markFailed("c", { code: "invalid_value", param: "reply_to_id" })
  assert.equal(isTargetGone(outbox.entries[0]), true)

  outbox.dropReply("c")

  assert.equal(isTargetGone(outbox.entries[0]), false)
  assert.equal(outbox.entries[0].replyTo, null)
})

test("an event replaces the reactions of a message and its rev", () => {
  const conversation = opened([message(1)])
  const reactions = [{ emoji: "👍", membership_ids: [1, 2] }]

  const changed = conversation.apply({ type: "reactions_updated", rev: 11, message_id: 1, reactions })

  assert.equal(changed, "messages")
  assert.deepEqual(conversation.timeline.byId(1).reactions, reactions)
  assert.equal(conversation.timeline.byId(1).rev, 11)
})

test("a reaction names its members and knows the own one", () => {
  const reactions = [{ emoji: "👍", membership_ids: [1, 2] }]
  const described = describeReactions(reactions, 2, (id) => ({ 1: "Ann", 2: "Ben" })[id])

  assert.deepEqual(described, [{ emoji: "👍", count: 2, isMine: true, names: ["Ann", "Ben"] }])
  assert.equal(hasReacted({ reactions }, "👍", 3), false)
  assert.equal(hasReacted({}, "👍", 3), false)
})

test("the last six emoji come first, filled up with usual ones", () => {
  const storage = memory()
  assert.equal(recentEmoji(storage).length, 6)
  for (const emoji of ["🔥", "🎲", "🔥"]) rememberEmoji(storage, emoji)

  assert.deepEqual(recentEmoji(storage).slice(0, 2), ["🔥", "🎲"])
  assert.equal(new Set(recentEmoji(storage)).size, 6)
})

test("emoji are found by the beginnings of words, in two languages, or by themselves", () => {
  assert.ok(findEmoji("").length > 100)
  assert.ok(findEmoji("hea").includes("❤️"))
  assert.deepEqual(findEmoji("thumbs up"), ["👍"])
  assert.ok(findEmoji("爱心").includes("❤️"))
  assert.deepEqual(findEmoji("🦖"), ["🦖"])
  assert.deepEqual(findEmoji("xyz"), [])
})

test("bookmarks are loaded once, page by page, when one is first toggled", async () => {
  const calls = []
  const api = {
    bookmarks: async (id, { after }) => {
      calls.push(`list ${id} ${after}`)
      return after === 0
        ? { data: [message(1)], has_more: true, cursor: 1 }
        : { data: [message(2)], has_more: false, cursor: null }
    },
    addBookmark: async (id) => calls.push(`add ${id}`),
    removeBookmark: async (id) => calls.push(`remove ${id}`),
  }
  const bookmarks = new BookmarkActions({ api })
  assert.equal(bookmarks.has(message(2)), false)

  assert.equal(await bookmarks.toggle(message(2)), false)
  assert.equal(await bookmarks.toggle(message(3)), true)

  assert.deepEqual(calls, ["list 1 0", "list 1 1", "remove 2", "add 3"])
  assert.equal(bookmarks.has(message(3)), true)
})
