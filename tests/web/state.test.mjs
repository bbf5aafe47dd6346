// State of a tab: streams, the outbox, drafts, pages, typing, the roster.
import assert from "node:assert/strict"
import test from "node:test"
import { readAliases } from "../../static/js/models/members/aliases.js"
import Drafts from "../../static/js/models/conversation/drafts.js"
import Outbox from "../../static/js/models/conversation/outbox.js"
import Paginator from "../../static/js/models/conversation/paginator.js"
import Roster from "../../static/js/models/members/roster.js"
import RunStream from "../../static/js/models/runs/run_stream.js"
import Timeline from "../../static/js/models/conversation/timeline.js"
import TypingTracker from "../../static/js/models/conversation/typing_tracker.js"
import { MemoryStorage, message } from "./support.mjs"

test("an overlapping delta is appended once", () => {
  const stream = new RunStream({ runId: "r", membershipId: 1, text: "Hello" })

  const fits = stream.append({ offset: 3, delta: "lo you" })

  assert.equal(fits, true)
  assert.equal(stream.text, "Hello you")
})

test("a known delta changes nothing", () => {
  const stream = new RunStream({ runId: "r", membershipId: 1, text: "Hello" })

  stream.append({ offset: 0, delta: "Hel" })

  assert.equal(stream.text, "Hello")
})

test("offsets count UTF-16 units, also after an emoji", () => {
  const stream = new RunStream({ runId: "r", membershipId: 1 })

  stream.append({ offset: 0, delta: "🎭" })

  assert.equal(stream.append({ offset: 2, delta: "!" }), true)
  assert.equal(stream.text, "🎭!")
})

test("a failed message is sent again with the same client id", () => {
  const outbox = new Outbox(new MemoryStorage(), 1)
  outbox.add("abc", "Hello", 0)

  outbox.markFailed("abc", "network")
  const again = outbox.markPending("abc")

  assert.equal(again.clientId, "abc")
  assert.equal(outbox.entries.length, 1)
})

test("a message that was pending before a reload has failed", () => {
  const storage = new MemoryStorage()
  new Outbox(storage, 1).add("abc", "Hello", 0)

  const [entry] = new Outbox(storage, 1).entries

  assert.equal(entry.state, "failed")
  assert.equal(entry.clientId, "abc")
})

test("a confirmed message is removed", () => {
  const storage = new MemoryStorage()
  const outbox = new Outbox(storage, 1)
  outbox.add("abc", "Hello", 0)

  outbox.remove("abc")

  assert.equal(storage.items.size, 0)
})

test("drafts are separate for each user and conversation", () => {
  const storage = new MemoryStorage()
  new Drafts(storage, 1).write(7, "mine")

  assert.equal(new Drafts(storage, 1).read(7), "mine")
  assert.equal(new Drafts(storage, 1).read(8), "")
  assert.equal(new Drafts(storage, 2).read(7), "")
})

test("a page is requested once", async () => {
  const timeline = new Timeline()
  timeline.reset([message({ seq: 51 })])
  let requests = 0
  const paginator = new Paginator(timeline, async () => {
    requests += 1
    return { data: [message({ seq: 50 })], has_more: false }
  })

  await Promise.all([paginator.loadOlder(), paginator.loadOlder()])
  await paginator.loadOlder()

  assert.equal(requests, 1)
  assert.deepEqual(
    timeline.messages.map(({ seq }) => seq),
    [50, 51],
  )
})

test("a page that is outdated by a reset is dropped", async () => {
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

test("typing ends after a timeout if its event is lost", () => {
  let now = 0
  const tracker = new TypingTracker(() => now)
  tracker.set(1, true)

  now = 6000

  assert.deepEqual(tracker.active, [])
})

test("typing ends with the event of the server", () => {
  const tracker = new TypingTracker(() => 0)
  tracker.set(1, true)
  tracker.set(2, true)

  tracker.set(1, false)

  assert.deepEqual(tracker.active, [2])
})

test("the roster is ordered by position, then by id, without removed members", () => {
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

test("a muted character can be asked to speak, an observer cannot", () => {
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

test("a moved character gets the position of its new neighbor, and the others shift", () => {
  const member = (id, position, kind = "character") => ({ id, position, kind, status: "active" })
  const roster = new Roster([member(1, 0), member(9, 1, "human"), member(2, 2), member(3, 3)])

  const requests = roster.moveTo(1, 2)

  assert.equal(requests, 3)
  assert.deepEqual(
    roster.characters.map(({ id }) => id),
    [2, 3, 1],
  )
  assert.equal(roster.byId(9).position, 1)
})

test("the first character cannot move up, and a move to the same index does nothing", () => {
  const member = (id, position) => ({ id, position, kind: "character", status: "active" })
  const roster = new Roster([member(1, 0), member(2, 1)])

  assert.deepEqual([roster.moveTo(1, -1), roster.moveTo(2, 2), roster.moveTo(1, 0), roster.moveTo(7, 0)], [null, null, null, null])
})

test("aliases are read one by one, without duplicates", () => {
  assert.deepEqual(readAliases(" Bobby, Sir Robert ,,Bobby，老鲍、小鲍"), ["Bobby", "Sir Robert", "老鲍", "小鲍"])
  assert.deepEqual(readAliases("  "), [])
})
