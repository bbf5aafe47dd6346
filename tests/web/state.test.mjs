// What a tab keeps: streams, the outbox, drafts, pages, who types, who is in the cast.
import assert from "node:assert/strict"
import test from "node:test"
import { readAliases } from "../../static/js/models/members/aliases.js"
import Drafts from "../../static/js/models/conversation/drafts.js"
import Outbox from "../../static/js/models/conversation/outbox.js"
import Paginator from "../../static/js/models/conversation/paginator.js"
import { may } from "../../static/js/models/members/rights.js"
import Roster from "../../static/js/models/members/roster.js"
import RunStream from "../../static/js/models/runs/run_stream.js"
import Timeline from "../../static/js/models/conversation/timeline.js"
import TypingTracker from "../../static/js/models/conversation/typing_tracker.js"
import { MemoryStorage, message } from "./support.mjs"

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
  assert.deepEqual(
    timeline.messages.map(({ seq }) => seq),
    [50, 51],
  )
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
  assert.deepEqual(
    timeline.messages.map(({ seq }) => seq),
    [900],
  )
})

test("a person whose end of typing got lost stops by themselves", () => {
  let now = 0
  const tracker = new TypingTracker(() => now)
  tracker.set(1, true)

  now = 6000

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
  const member = (id, position, rest = {}) => ({
    id,
    position,
    kind: "character",
    status: "active",
    participation: "active",
    display_name: `M${id}`,
    ...rest,
  })
  const roster = new Roster([member(3, 1), member(1, 2), member(2, 1), member(4, 0, { status: "removed" })])

  assert.deepEqual(
    roster.characters.map(({ id }) => id),
    [2, 3, 1],
  )
  assert.equal(roster.nameOf(4), "M4")
})

test("a muted character may be asked to speak, an observer may not", () => {
  const member = (id, participation) => ({
    id,
    position: id,
    kind: "character",
    status: "active",
    participation,
  })
  const roster = new Roster([member(1, "muted"), member(2, "observer")])

  assert.deepEqual(
    roster.speakers.map(({ id }) => id),
    [1],
  )
})

test("a character that is moved takes the position of whoever stood there, and the others close up", () => {
  const member = (id, position, kind = "character") => ({ id, position, kind, status: "active" })
  const roster = new Roster([member(1, 0), member(9, 1, "human"), member(2, 2), member(3, 3)])

  const asked = roster.moveTo(1, 2)

  assert.equal(asked, 3)
  assert.deepEqual(
    roster.characters.map(({ id }) => id),
    [2, 3, 1],
  )
  assert.equal(roster.byId(9).position, 1)
})

test("who is first goes no further up, and nobody moves to where they are", () => {
  const member = (id, position) => ({ id, position, kind: "character", status: "active" })
  const roster = new Roster([member(1, 0), member(2, 1)])

  assert.deepEqual([roster.moveTo(1, -1), roster.moveTo(2, 2), roster.moveTo(1, 0), roster.moveTo(7, 0)], [null, null, null, null])
})

test("names are read one by one, each once", () => {
  assert.deepEqual(readAliases(" Bobby, Sir Robert ,,Bobby，老鲍、小鲍"), ["Bobby", "Sir Robert", "老鲍", "小鲍"])
  assert.deepEqual(readAliases("  "), [])
})
