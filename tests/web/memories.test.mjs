// Memories: the list, who may change what, conflicts, forgetting, and those of a prompt.
import assert from "node:assert/strict"
import test from "node:test"
import MemoryActions from "../../static/js/actions/memories.js"
import { changesOf, choosableKinds, isTextConflict, sourcesOf, valuesOf } from "../../static/js/models/memories/memory.js"
import MemoryList from "../../static/js/models/memories/memory_list.js"
import { aboutChoices, forgettable, mayChangeAbout, mayLearnNow } from "../../static/js/models/memories/memory_rights.js"
import { bestScore, readRecallReasons, splitRecalled } from "../../static/js/models/memories/recall_reason.js"
import english from "../../static/js/strings/en/memories.js"

const ME = { id: 7, participation: "active" }
const SPACE = { status: "active", my_role: "member" }
const GUESTS = { status: "active", my_role: "guest" }

function memory(fields = {}) {
  return {
    id: 1,
    space_id: 3,
    content: "Ann has a dog.",
    kind: "event",
    importance: 0.5,
    pinned: false,
    about_membership_id: null,
    conversation_id: 5,
    source_from_seq: 4,
    source_to_seq: 6,
    version: 1,
    ...fields,
  }
}

function conflictWith(current) {
  return Object.assign(new Error("edit_conflict"), { code: "edit_conflict", current })
}

// An API whose memory is `stored`, and that refuses other versions.
function apiOf(stored) {
  const sent = []
  return {
    sent,
    async changeMemory(spaceId, id, { expected_version: version, ...changes }) {
      sent.push({ spaceId, id, version, changes })
      if (version !== stored.version) throw conflictWith(stored)
      return { ...stored, ...changes, version: version + 1 }
    },
  }
}

test("a snippet can be kept, but not chosen for another memory", () => {
  assert.deepEqual(choosableKinds(), ["relation", "preference", "event"])
  assert.equal(choosableKinds("event").includes("snippet"), false)
  assert.equal(choosableKinds("snippet").includes("snippet"), true)
})

test("only changed fields are sent", () => {
  const before = memory()

  assert.deepEqual(changesOf(before, valuesOf(before)), {})
  assert.deepEqual(changesOf(before, { ...valuesOf(before), pinned: true, about_membership_id: 7 }), {
    pinned: true,
    about_membership_id: 7,
  })
})

test("two changes conflict only if both are of the text and differ", () => {
  const seen = memory()
  const theirs = memory({ content: "Ann has a cat." })

  assert.equal(isTextConflict(seen, theirs, { content: "Ann has two dogs." }), true)
  assert.equal(isTextConflict(seen, theirs, { content: "Ann has a cat." }), false)
  assert.equal(isTextConflict(seen, theirs, { pinned: true }), false)
  assert.equal(isTextConflict(seen, memory({ pinned: true }), { content: "Ann has two dogs." }), false)
})

test("the sources of a memory are its first and its last message, and one that a person wrote has none", () => {
  const seqsOf = (fields) => sourcesOf(memory(fields)).map((it) => [it.seq, it.memory.source_from_seq])

  assert.deepEqual(seqsOf({}), [[4, 4], [6, 6]])
  assert.deepEqual(seqsOf({ source_to_seq: 4 }), [[4, 4]])
  assert.deepEqual(seqsOf({ conversation_id: null, source_from_seq: null }), [])
})

test("pages are added once each, and the cursor ends with the last page", () => {
  const list = new MemoryList()

  list.reset({ data: [memory({ id: 9 }), memory({ id: 8 })], has_more: true, cursor: 8 })
  assert.equal(list.cursor, 8)
  list.append({ data: [memory({ id: 8 }), memory({ id: 2 })], has_more: false, cursor: null })

  assert.deepEqual([list.memories.map((it) => it.id), list.cursor], [[9, 8, 2], null])
})

test("an event adds, changes and removes memories of the list, and an older version is ignored", () => {
  const list = new MemoryList()
  list.reset({ data: [memory({ id: 9, version: 3 }), memory({ id: 4 })], has_more: true, cursor: 4 })
  const apply = (event, isFiltered = false) => list.apply(event, { isFiltered })
  const updated = (fields) => ({ type: "memory_updated", memory: memory(fields) })

  assert.equal(apply(updated({ id: 12 })), "changed")
  assert.equal(apply(updated({ id: 6 })), "changed")
  assert.equal(apply(updated({ id: 9, version: 2, content: "Older" })), null)
  assert.equal(apply(updated({ id: 4, version: 2, content: "Newer" })), "changed")
  assert.equal(apply(updated({ id: 2 })), null, "it is on a page that is not loaded")
  assert.equal(apply({ type: "memory_deleted", memory_id: 9 }), "changed")
  assert.equal(apply({ type: "memory_deleted", memory_id: 9 }), null)

  assert.deepEqual(
    list.memories.map((it) => [it.id, it.content]),
    [
      [12, "Ann has a dog."],
      [6, "Ann has a dog."],
      [4, "Newer"],
    ],
  )
})

test("the list is read again after a change of many memories, and if a filter hides new ones", () => {
  const list = new MemoryList()
  list.reset({ data: [memory({ id: 9 })], has_more: false, cursor: null })
  const apply = (event) => list.apply(event, { isFiltered: true })

  assert.equal(apply({ type: "memory_updated", memory: memory({ id: 10 }) }), "stale")
  assert.equal(apply({ type: "memory_updated", memory: memory({ id: 9, version: 2 }) }), "changed")
  assert.equal(apply({ type: "memories_forgotten", count: 3 }), "stale")
  assert.equal(apply({ type: "conversation_deleted", conversation_id: 5 }), "stale")
  assert.equal(apply({ type: "memory_state", reload: true }), "stale")
  assert.equal(apply({ type: "memory_state", reload: false }), null)
})

test("an event that may be older than the deletion of its memory does not show the memory again", () => {
  const list = new MemoryList()
  const page = { data: [memory({ id: 9 }), memory({ id: 8 })], has_more: false, cursor: null }
  list.reset(page)
  const apply = (event) => list.apply(event, { isFiltered: false })
  const updated = (id) => apply({ type: "memory_updated", memory: memory({ id, version: 2 }) })
  const shown = () => list.memories.map((it) => it.id)

  apply({ type: "memory_deleted", memory_id: 9 })
  assert.equal(updated(9), "stale", "its message may have been restored")
  assert.equal(updated(10), "changed")
  assert.deepEqual(shown(), [10, 8])

  apply({ type: "memories_forgotten", count: 2 })
  list.reset({ ...page, data: [memory({ id: 8 })] })
  assert.equal(updated(10), "stale")
  assert.equal(updated(8), "changed")
  assert.equal(updated(11), "changed", "a newer memory was not forgotten")
  assert.deepEqual(shown(), [11, 8])
})

test("after a deletion, a changed memory of a page that is not loaded leaves the list as it is", () => {
  const list = new MemoryList()
  list.reset({ data: [memory({ id: 9 }), memory({ id: 8 })], has_more: true, cursor: 8 })
  const apply = (event) => list.apply(event, { isFiltered: false })

  apply({ type: "conversation_deleted", conversation_id: 5 })

  assert.equal(apply({ type: "memory_updated", memory: memory({ id: 3, version: 2 }) }), null)
})

test("a changed memory keeps its place and how it was found", () => {
  const list = new MemoryList()
  list.reset({ data: [memory({ id: 9, score: 0.7 }), memory({ id: 8 })], has_more: false, cursor: null })

  list.put(memory({ id: 9, content: "New" }))
  list.put(memory({ id: 1 }))

  assert.deepEqual(
    list.memories.map((it) => [it.id, it.content, it.score]),
    [
      [9, "New", 0.7],
      [8, "Ann has a dog.", undefined],
    ],
  )
  assert.deepEqual([list.remove(8), list.remove(8), list.memories.length], [1, -1, 1])
})

test("members change every memory, guests and observers only those about themselves", () => {
  const observer = { ...ME, participation: "observer" }
  const may = (space, member) => [null, 6, 7].map((id) => mayChangeAbout(space, member, id))

  assert.deepEqual(may(SPACE, ME), [true, true, true])
  assert.deepEqual(may(GUESTS, ME), [false, false, true])
  assert.deepEqual(may({ status: "active", my_role: "owner" }, observer), [false, false, true])
  assert.deepEqual(may({ status: "archived", my_role: "owner" }, ME), [false, false, false])
  assert.deepEqual(may({ status: "active", my_role: "admin" }, null), [false, false, false])
})

test("a guest writes about nobody else", () => {
  assert.deepEqual(aboutChoices(SPACE, ME, [6, 7]), [null, 6, 7])
  assert.deepEqual(aboutChoices(GUESTS, ME, [6, 7]), [7])
})

test("moderators forget everything, others what is about themselves", () => {
  const there = { memberIds: [6, 7], conversationId: 5 }
  const moderated = { status: "active", my_role: "moderator" }

  assert.deepEqual(forgettable(moderated, ME, there), [
    { about_membership_id: 7 },
    { about_membership_id: 6 },
    { conversation_id: 5 },
    { all: true },
  ])
  assert.deepEqual(forgettable(GUESTS, ME, there), [{ about_membership_id: 7 }])
  assert.deepEqual(forgettable({ ...moderated, status: "archived" }, ME, there), [])
  assert.equal(forgettable({ status: "active", my_role: "admin" }, null, there).length, 4)
})

test("a change is applied to the current memory if only other fields have changed", async () => {
  const api = apiOf(memory({ version: 4, pinned: true }))

  const changed = await new MemoryActions({ api }).change(memory(), { content: "Ann has two dogs." })

  assert.deepEqual([changed.content, changed.pinned, changed.version], ["Ann has two dogs.", true, 5])
  assert.deepEqual(
    api.sent.map((it) => [it.spaceId, it.id, it.version]),
    [
      [3, 1, 1],
      [3, 1, 4],
    ],
  )
})

test("a change of a text that another member has changed is refused with the current memory", async () => {
  const current = memory({ version: 2, content: "Ann has a cat." })
  const api = apiOf(current)
  const actions = new MemoryActions({ api })
  const mine = { content: "Ann has two dogs." }

  await assert.rejects(actions.change(memory(), mine), { code: "edit_conflict", current })
  const kept = await actions.change(current, mine)

  assert.equal(kept.content, "Ann has two dogs.")
})

test("a change is not sent forever", async () => {
  let version = 1
  const api = {
    async changeMemory() {
      version += 1
      throw conflictWith(memory({ version }))
    },
  }

  await assert.rejects(new MemoryActions({ api }).change(memory(), { pinned: true }), { code: "edit_conflict" })

  assert.equal(version, 4)
})

test("an older page is requested by its cursor, with the same filters", async () => {
  const asked = []
  const api = { memories: async (...given) => asked.push(given) }

  await new MemoryActions({ api }).list(3, { q: "dog", membership_id: "", kind: "event" }, 8)

  assert.deepEqual(asked, [[3, { q: "dog", membership_id: "", kind: "event", before: 8, limit: 30 }]])
})

test("memories are counted without deleting them, then forgotten", async () => {
  const bodies = []
  const api = {
    async forgetMemories(spaceId, body) {
      bodies.push(body)
      return { deleted: 2 }
    },
  }
  const actions = new MemoryActions({ api })

  assert.deepEqual([await actions.countForgotten(3, { all: true }), await actions.forget(3, { all: true })], [2, 2])
  assert.deepEqual(bodies, [{ all: true, dry_run: true }, { all: true }])
})

test("the source is the first message of the range that is left", async () => {
  const among = (...seqs) => ({
    messages: async (id, { after }) => ({
      data: seqs.filter((seq) => seq > after).map((seq) => ({ id: seq + 100, seq })).slice(0, 1),
    }),
  })
  const sourceIn = (...seqs) => new MemoryActions({ api: among(...seqs) }).sourceOf(memory())

  const found = await Promise.all([sourceIn(3, 4, 5), sourceIn(3, 6), sourceIn(3, 9), sourceIn(3)])
  assert.deepEqual(found, [104, 106, null, null])
})

test("every reason of the server has a text", () => {
  const read = readRecallReasons("pinned; matched dog, pixel; vector 0.71; from afar")

  assert.deepEqual(
    read.map(({ key, values }) => [key, values]),
    [
      ["memory.because_pinned", {}],
      ["memory.because_words", { words: "dog, pixel" }],
      ["memory.because_meaning", { score: 0.71 }],
      [null, {}],
    ],
  )
  assert.equal(read[3].text, "from afar")
  assert.ok(read.slice(0, 3).every(({ key }) => key in english))
  assert.deepEqual(readRecallReasons(""), [])
})

test("memories that came close follow those that the prompt contained", () => {
  const all = [
    { rank: 1, score: 0.6 },
    { rank: null, score: 0.5 },
    { rank: 0, score: 0.9 },
  ]

  const { recalled, close } = splitRecalled(all)

  assert.deepEqual([recalled.map((it) => it.score), close.map((it) => it.score)], [[0.9, 0.6], [0.5]])
})

test("the score is the better one of both searches", () => {
  assert.equal(bestScore({ vector_score: 0.4, text_score: 0.7 }), 0.7)
  assert.equal(bestScore({ vector_score: 0.9, text_score: 0.7 }), 0.9)
  assert.equal(bestScore({ vector_score: null, text_score: 0.2 }), 0.2)
})

test("learning can be requested by members while it is on", () => {
  const on = { enabled: true, learn: true }

  assert.equal(mayLearnNow(SPACE, ME, on), true)
  assert.equal(mayLearnNow({ ...SPACE, my_role: "admin" }, null, on), true)
  assert.equal(mayLearnNow(GUESTS, ME, on), false)
  assert.equal(mayLearnNow(SPACE, { ...ME, participation: "observer" }, on), false)
  assert.equal(mayLearnNow({ ...SPACE, status: "archived" }, ME, on), false)
  assert.equal(mayLearnNow(SPACE, ME, { enabled: false, learn: true }), false)
  assert.equal(mayLearnNow(SPACE, ME, { enabled: true, learn: false }), false)
})

test("a request to learn names the conversation", async () => {
  const sent = []
  const api = { learnFromMessages: async (...args) => sent.push(args) }

  await new MemoryActions({ api }).learn(3, 5)

  assert.deepEqual(sent, [[3, { conversation_id: 5 }]])
})
