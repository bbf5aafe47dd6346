// A jump to old messages: a separate range that grows until it reaches the newest one.
import assert from "node:assert/strict"
import test from "node:test"
import MessageWindow from "../../static/js/models/conversation/message_window.js"
import Paginator from "../../static/js/models/conversation/paginator.js"
import OpenConversation from "../../static/js/models/conversation/open_conversation.js"
import { rows } from "../../static/js/models/conversation/timeline_rows.js"
import Timeline from "../../static/js/models/conversation/timeline.js"
import { message, snapshot } from "./support.mjs"

const from = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => message({ seq: first + i }))
const seqs = (timeline) => timeline.messages.map(({ seq }) => seq)

// The newest ten of a hundred messages, and a jump to the middle.
function jumped() {
  const timeline = new Timeline()
  timeline.reset(from(91, 100))
  timeline.jump(from(48, 52))
  return timeline
}

test("a jump shows its page, with more messages on both sides", () => {
  const timeline = jumped()

  assert.deepEqual(seqs(timeline), [48, 49, 50, 51, 52])
  assert.equal(timeline.mayHaveOlder, true)
  assert.equal(timeline.mayHaveNewer, true)
  assert.deepEqual(timeline.gap, { after: 52, before: 91 })
})

test("the newest message is the tail after a jump too", () => {
  const timeline = jumped()

  assert.equal(timeline.tail.seq, 100)
  assert.equal(timeline.byId(200).seq, 100)
})

test("a live message is added to the newest range after a jump", () => {
  const timeline = jumped()

  const isDifferent = timeline.put(message({ seq: 101 }))

  assert.equal(isDifferent, true)
  assert.equal(timeline.tail.seq, 101)
  assert.deepEqual(seqs(timeline), [48, 49, 50, 51, 52])
  timeline.showNewest()
  assert.deepEqual(seqs(timeline), [...from(91, 101)].map(({ seq }) => seq))
})

test("the jump range grows to the newest one without gaps and duplicates", async () => {
  const timeline = jumped()
  const requests = []
  const paginator = new Paginator(timeline, async ({ after, before }) => {
    requests.push([after, before])
    // A message arrives while the page is loading.
    timeline.put(message({ seq: 100 + requests.length }))
    const last = Math.min(after + 20, before - 1)
    return { data: from(after + 1, last), has_more: last < before - 1 }
  })

  while (timeline.mayHaveNewer) await paginator.loadNewer()

  assert.deepEqual(requests, [
    [52, 91],
    [72, 91],
  ])
  assert.deepEqual(
    seqs(timeline),
    from(48, 102).map(({ seq }) => seq),
  )
  assert.equal(timeline.mayHaveOlder, true)
  assert.equal(await paginator.loadNewer(), 0)
})

test("a page that overlaps with the newest range is merged at once", () => {
  const timeline = new Timeline()
  timeline.reset(from(91, 100))

  timeline.jump(from(80, 93))

  assert.equal(timeline.mayHaveNewer, false)
  assert.deepEqual(
    seqs(timeline),
    from(80, 100).map(({ seq }) => seq),
  )
})

test("a change in the jump range is shown; one of a message that is not loaded makes no gap", () => {
  const timeline = jumped()

  timeline.put(message({ seq: 50, rev: 200, content: "changed" }))
  const isDifferent = timeline.put(message({ seq: 70, rev: 201 }))
  timeline.put({ id: 151, seq: 51, rev: 202, visibility: "hidden" })

  assert.equal(timeline.byId(150).content, "changed")
  assert.equal(isDifferent, false)
  assert.deepEqual(seqs(timeline), [48, 49, 50, 52])
})

test("an update that arrives while a page is loading is newer than the page", async () => {
  const timeline = jumped()
  const paginator = new Paginator(timeline, async ({ after }) => {
    timeline.put(message({ seq: 54, rev: 200, content: "changed" }))
    timeline.put({ id: 155, seq: 55, rev: 201, visibility: "hidden" })
    timeline.put(message({ seq: 56, rev: 202, content: "brought back" }))
    // The page is older than these updates.
    return { data: [53, 54, 55, 57].map((seq) => message({ seq })), has_more: after > 0 }
  })

  await paginator.loadNewer()

  assert.deepEqual(seqs(timeline).slice(-4), [53, 54, 56, 57])
  assert.equal(timeline.byId(154).content, "changed")
  assert.equal(timeline.byId(156).content, "brought back")
})

test("an update that is older than a page does not undo it", () => {
  const timeline = jumped()

  timeline.put(message({ seq: 70, rev: 200, content: "old" }))
  timeline.append([message({ seq: 70, rev: 201, content: "new" })], true)

  assert.equal(timeline.byId(170).content, "new")
})

test("a page that is outdated by a jump is dropped", async () => {
  const timeline = jumped()
  const paginator = new Paginator(timeline, async () => {
    timeline.showNewest()
    return { data: from(53, 60), has_more: true }
  })

  const added = await paginator.loadNewer()

  assert.equal(added, 0)
  assert.deepEqual(
    seqs(timeline),
    from(91, 100).map(({ seq }) => seq),
  )
})

test("a snapshot that resets the timeline ends the jump", () => {
  const timeline = jumped()

  timeline.reset(from(900, 903))

  assert.equal(timeline.mayHaveNewer, false)
  assert.deepEqual(seqs(timeline), [900, 901, 902, 903])
})

test("pending messages and the stream are not shown after a jump", () => {
  const conversation = new OpenConversation({ conversationId: 1 })
  const running = { id: 9, speaker_space_membership_id: 2, target_message_id: null }
  conversation.restore(snapshot({ messages: from(91, 100), rev: 1, running_run: running }))
  const entries = [{ clientId: "a", content: "Hi", createdAt: 0 }]
  const kinds = () => new Set(rows({ conversation, entries, myMembershipId: 2, now: 0, unreadAfter: 40 }).map(({ kind }) => kind))

  const atEnd = kinds()
  conversation.timeline.jump(from(48, 52))

  assert.deepEqual([...atEnd].sort(), ["day", "message", "pending", "stream", "unread"])
  assert.deepEqual([...kinds()].sort(), ["day", "message"])
})

test("newer messages are shown in steps, and the oldest leave the window", () => {
  const view = new MessageWindow()
  view.reset(240)
  view.around(239)

  view.appended(300)

  assert.equal(view.isAtEnd, false)
  assert.equal(view.showNewer(), true)
  assert.deepEqual([view.start, view.end, view.isAtEnd], [60, 300, true])
})
