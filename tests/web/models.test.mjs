// The smaller models: each test is one rule.
import assert from "node:assert/strict"
import test from "node:test"
import { hue, initials } from "../../static/js/models/avatar.js"
import { readCard } from "../../static/js/models/card.js"
import Drafts from "../../static/js/models/drafts.js"
import { lines, splitParagraphs } from "../../static/js/models/emphasis.js"
import { group } from "../../static/js/models/grouping.js"
import MessageWindow from "../../static/js/models/message_window.js"
import Outbox from "../../static/js/models/outbox.js"
import Paginator from "../../static/js/models/paginator.js"
import { describe } from "../../static/js/models/queue.js"
import { may } from "../../static/js/models/rights.js"
import Roster from "../../static/js/models/roster.js"
import { rows } from "../../static/js/models/rows.js"
import Room from "../../static/js/models/room.js"
import RunStream from "../../static/js/models/run_stream.js"
import Timeline from "../../static/js/models/timeline.js"
import TypingTracker from "../../static/js/models/typing_tracker.js"
import { MemoryStorage, message, snapshot } from "./support.mjs"

const MINUTE = 60_000

test("a delta that overlaps is taken once", () => {
  const stream = new RunStream({ runId: "r", membershipId: 1, text: "Hello" })

  const fits = stream.append({ offset: 3, delta: "lo you" })

  assert.equal(fits, true)
  assert.equal(stream.text, "Hello you")
})

test("a delta that is known already changes nothing", () => {
  const stream = new RunStream({ runId: "r", membershipId: 1, text: "Hello" })

  stream.append({ offset: 0, delta: "Hel" })

  assert.equal(stream.text, "Hello")
})

test("offsets count as the browser counts, also behind an emoji", () => {
  const stream = new RunStream({ runId: "r", membershipId: 1 })

  stream.append({ offset: 0, delta: "🎭" })

  assert.equal(stream.append({ offset: 2, delta: "!" }), true)
  assert.equal(stream.text, "🎭!")
})

test("a failed message keeps its client id when it is sent again", () => {
  const outbox = new Outbox(new MemoryStorage(), 1)
  outbox.add("abc", "Hello", 0)

  outbox.markFailed("abc", "network")
  const again = outbox.markPending("abc")

  assert.equal(again.clientId, "abc")
  assert.equal(outbox.entries.length, 1)
})

test("a message that was under way when the page was left is found as failed", () => {
  const storage = new MemoryStorage()
  new Outbox(storage, 1).add("abc", "Hello", 0)

  const [entry] = new Outbox(storage, 1).entries

  assert.equal(entry.state, "failed")
  assert.equal(entry.clientId, "abc")
})

test("a confirmed message leaves nothing behind", () => {
  const storage = new MemoryStorage()
  const outbox = new Outbox(storage, 1)
  outbox.add("abc", "Hello", 0)

  outbox.remove("abc")

  assert.equal(storage.items.size, 0)
})

test("drafts are kept apart by person and conversation", () => {
  const storage = new MemoryStorage()
  new Drafts(storage, 1).write(7, "mine")

  assert.equal(new Drafts(storage, 1).read(7), "mine")
  assert.equal(new Drafts(storage, 1).read(8), "")
  assert.equal(new Drafts(storage, 2).read(7), "")
})

test("the same author within five minutes is one group", () => {
  const found = group([{ authorId: 1, at: 0 }, { authorId: 1, at: 5 * MINUTE }, { authorId: 1, at: 11 * MINUTE }, { authorId: 2, at: 11 * MINUTE }])

  assert.deepEqual(found.map(({ startsGroup }) => startsGroup), [true, false, true, true])
})

test("a new day begins a group", () => {
  const midnight = new Date(2026, 0, 2).getTime()

  const [, second] = group([{ authorId: 1, at: midnight - MINUTE }, { authorId: 1, at: midnight + MINUTE }])

  assert.deepEqual(second, { startsDay: true, startsGroup: true })
})

test("a page is asked for once, however often one scrolls", async () => {
  const timeline = new Timeline()
  timeline.reset([message({ seq: 51 })])
  let asked = 0
  const paginator = new Paginator(timeline, async () => {
    asked += 1
    return { data: [message({ seq: 50 })], has_more: false }
  })

  await Promise.all([paginator.loadOlder(), paginator.loadOlder()])
  await paginator.loadOlder()

  assert.equal(asked, 1)
  assert.deepEqual(timeline.messages.map(({ seq }) => seq), [50, 51])
})

test("a page that a reset made useless is dropped", async () => {
  const timeline = new Timeline()
  timeline.reset([message({ seq: 51 })])
  const paginator = new Paginator(timeline, async () => {
    timeline.reset([message({ seq: 900 })])
    return { data: [message({ seq: 50 })], has_more: false }
  })

  const added = await paginator.loadOlder()

  assert.equal(added, 0)
  assert.deepEqual(timeline.messages.map(({ seq }) => seq), [900])
})

test("a person whose end of typing got lost stops by themselves", () => {
  let now = 0
  const tracker = new TypingTracker(() => now)
  tracker.set(1, true)

  now = 8000

  assert.deepEqual(tracker.active, [])
})

test("typing ends by word of the server", () => {
  const tracker = new TypingTracker(() => 0)
  tracker.set(1, true)
  tracker.set(2, true)

  tracker.set(1, false)

  assert.deepEqual(tracker.active, [2])
})

test("the cast stands by position, then by id, without those who left", () => {
  const member = (id, position, rest = {}) => ({ id, position, kind: "character", status: "active", participation: "active", display_name: `M${id}`, ...rest })
  const roster = new Roster([member(3, 1), member(1, 2), member(2, 1), member(4, 0, { status: "removed" })])

  assert.deepEqual(roster.characters.map(({ id }) => id), [2, 3, 1])
  assert.equal(roster.nameOf(4), "M4")
})

test("a muted character may be asked to speak, an observer may not", () => {
  const member = (id, participation) => ({ id, position: id, kind: "character", status: "active", participation })
  const roster = new Roster([member(1, "muted"), member(2, "observer")])

  assert.deepEqual(roster.speakers.map(({ id }) => id), [1])
})

test("at most 240 messages are shown, whatever is loaded", () => {
  const view = new MessageWindow()
  view.reset(1000)

  view.showOlder()

  assert.ok(view.end - view.start <= 240)
  assert.equal(view.isAtEnd, false)
})

test("a window follows the end until one scrolls up", () => {
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

test("older messages put in front leave the window on the same messages", () => {
  const view = new MessageWindow()
  view.reset(50)

  view.prepended(60)

  assert.deepEqual([view.start, view.end], [60, 110])
})

test("emphasis is found, and a mark without a partner is shown as it is", () => {
  assert.deepEqual(lines("a *b* **c** _d_ *e"), [[
    { text: "a ", mark: null }, { text: "b", mark: "em" }, { text: " ", mark: null }, { text: "c", mark: "strong" },
    { text: " ", mark: null }, { text: "d", mark: "em" }, { text: " *e", mark: null },
  ]])
})

test("underscores inside a word are no emphasis", () => {
  assert.deepEqual(lines("snake_case_name"), [[{ text: "snake_case_name", mark: null }]])
})

test("empty lines part paragraphs", () => {
  assert.deepEqual(splitParagraphs("a\nb\n\n\nc"), ["a\nb", "c"])
})

test("initials are the first and the last word's", () => {
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
  const card = { spec: "chara_card_v2", data: { name: " Sera ", description: "A guardian", first_mes: "Hello." } }

  const found = readCard(JSON.stringify(card))

  assert.deepEqual(found, { card, name: "Sera", description: "A guardian", greeting: "Hello." })
})

test("what is no card says why", () => {
  assert.deepEqual(readCard("{"), { problem: "json" })
  assert.deepEqual(readCard("[1]"), { problem: "card" })
  assert.deepEqual(readCard("{}"), { problem: "name" })
})

test("the queue says who speaks and who follows", () => {
  const round = { id: "q", slots: [{ position: 0, membership_id: 5, status: "pending" }, { position: 1, membership_id: 6, status: "pending", chosen_because: "next by position" }] }
  const running = { id: "a", round_id: "q", slot_position: 0, speaker_space_membership_id: 5, chosen_because: "mentioned" }

  const found = describe({ queue: { state: "generating", round, queued_run: null, running_run: running }, stream: null })

  assert.deepEqual(found, { state: "generating", now: 5, next: null, because: "mentioned", upcoming: [6], hasRound: true })
})

test("a queued run is next, with the reason of its slot", () => {
  const round = { id: "q", slots: [{ position: 0, membership_id: 5, status: "pending", chosen_because: "next by position" }] }
  const queued = { id: "a", round_id: "q", slot_position: 0, speaker_space_membership_id: 5, chosen_because: null }

  const found = describe({ queue: { state: "queued", round, queued_run: queued, running_run: null }, stream: null })

  assert.deepEqual([found.next, found.because, found.upcoming], [5, "next by position", []])
})

test("a guest may not let anybody speak", () => {
  assert.equal(may("guest", "generate"), false)
  assert.equal(may("member", "generate"), true)
  assert.equal(may("admin", "delete_space"), true)
  assert.equal(may(null, "generate"), false)
})

test("pending messages stand before the text that is being written", () => {
  const room = new Room({ conversationId: 1 })
  room.restore(snapshot({ messages: [message({ seq: 1 })], rev: 1, stream: { run_id: "r", membership_id: 2, text: "" } }))

  const found = rows({ room, entries: [{ clientId: "abc", content: "x", createdAt: 2000, state: "pending" }], seatId: 1, now: 3000, end: 1 })

  assert.deepEqual(found.map(({ kind }) => kind), ["day", "message", "pending", "stream"])
})

test("the unread mark stands before the first message of another that was not read", () => {
  const room = new Room({ conversationId: 1 })
  room.restore(snapshot({ messages: [message({ seq: 1 }), message({ seq: 2, author: 9 }), message({ seq: 3 }), message({ seq: 4, author: 9 })], rev: 4 }))

  const found = rows({ room, entries: [], seatId: 9, now: 0, end: 4, unreadAfter: 1 })

  assert.deepEqual(found.map(({ kind, seq }) => seq ?? kind), ["day", 1, 2, "unread", 3, 4])
})

test("a message before the window decides about its day but is not shown", () => {
  const room = new Room({ conversationId: 1 })
  room.restore(snapshot({ messages: [message({ seq: 1 }), message({ seq: 2 })], rev: 2 }))

  const found = rows({ room, entries: [], seatId: 9, now: 0, start: 1, end: 2 })

  assert.deepEqual(found.map(({ kind, startsGroup }) => [kind, startsGroup]), [["message", false]])
})
