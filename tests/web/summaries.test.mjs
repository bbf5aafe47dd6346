// Summaries of a conversation: which are in use, who may change them, and conflicts.
import assert from "node:assert/strict"
import test from "node:test"
import SummaryActions from "../../static/js/actions/summaries.js"
import Api from "../../static/js/api.js"
import {
  changesOf,
  cleanFacts,
  conflictsOf,
  fullText,
  mayChangeSummaries,
  splitSummaries,
  stateOf,
  valuesOf,
  withTheirs,
} from "../../static/js/models/summaries/summary.js"

function summary(fields = {}) {
  return {
    id: 1,
    conversation_id: 5,
    level: 1,
    version: 1,
    status: "current",
    is_usable: true,
    content: "Ann arrives.",
    pinned_facts: ["Ann has a dog."],
    ...fields,
  }
}

function conflictWith(current) {
  return Object.assign(new Error("edit_conflict"), { code: "edit_conflict", current })
}

// An API whose summary in use is `stored`, and that refuses other versions.
function apiOf(stored) {
  const sent = []
  return {
    sent,
    async changeSummary(id, { expected_version: version, ...changes }) {
      sent.push({ id, version, changes })
      if (version !== stored.version) throw conflictWith(stored)
      return { ...stored, ...changes, id: stored.id + 1, version: version + 1 }
    },
  }
}

test("the list is split into the running summary, its older versions and the parts", () => {
  const [running, older, oldest] = [4, 3, 2].map((id) => summary({ id, status: id === 4 ? "stale" : "superseded" }))
  const parts = [10, 11].map((id) => summary({ id, level: 0 }))

  assert.deepEqual(splitSummaries([running, older, oldest, ...parts]), { running, versions: [older, oldest], parts })
  assert.deepEqual(splitSummaries([]), { running: null, versions: [], parts: [] })
})

test("a summary of a deleted message is not used, whatever else has changed", () => {
  assert.equal(stateOf(summary()), "current")
  assert.equal(stateOf(summary({ status: "stale" })), "stale")
  assert.equal(stateOf(summary({ status: "stale", is_usable: false })), "unused")
  assert.equal(stateOf(summary({ status: "superseded", is_usable: false })), null)
})

test("guests, observers and archived spaces cannot change summaries", () => {
  const member = { id: 7, participation: "active" }
  const may = (fields, who = member) => mayChangeSummaries({ status: "active", my_role: "member", ...fields }, who)

  assert.deepEqual([may({}), may({ my_role: "moderator" })], [true, true])
  assert.deepEqual([may({ my_role: "guest" }), may({ status: "archived", my_role: "owner" })], [false, false])
  assert.deepEqual([may({}, { ...member, participation: "observer" }), may({}, null)], [false, false])
})

test("only changed fields are sent, and facts are compared by their text", () => {
  const before = summary()

  assert.deepEqual(changesOf(before, { content: "Ann arrives.", pinned_facts: ["Ann has a dog."] }), {})
  assert.deepEqual(changesOf(before, { ...valuesOf(before), pinned_facts: [] }), { pinned_facts: [] })
  assert.deepEqual(cleanFacts(["  a\n b ", "", " "]), ["a b"])
})

test("two changes conflict only if both are of the same field and differ", () => {
  const seen = summary()
  const theirs = summary({ content: "Ann leaves.", version: 2 })

  assert.deepEqual(conflictsOf(seen, theirs, { content: "Ann sleeps." }), ["content"])
  assert.deepEqual(conflictsOf(seen, theirs, { content: "Ann leaves." }), [])
  assert.deepEqual(conflictsOf(seen, theirs, { pinned_facts: [] }), [])
})

test("if their text is kept, one's own changes of other fields are kept too", () => {
  const seen = summary()
  const theirs = summary({ content: "Ann leaves." })
  const keep = (values, conflicts) => withTheirs(seen, theirs, { values, conflicts })
  const mine = { content: "Ann sleeps.", pinned_facts: ["New"] }

  assert.deepEqual(keep(mine, ["content"]), { content: "Ann leaves.", pinned_facts: ["New"] })
  assert.deepEqual(keep(mine, ["content", "pinned_facts"]), valuesOf(theirs))
  assert.deepEqual(keep(valuesOf(seen), []), valuesOf(theirs))
})

test("a change is applied to the newer version if only other fields have changed", async () => {
  const api = apiOf(summary({ id: 8, version: 4, content: "Ann leaves." }))

  const changed = await new SummaryActions({ api }).change(summary(), { pinned_facts: [] })

  assert.deepEqual([changed.content, changed.pinned_facts, changed.version], ["Ann leaves.", [], 5])
  assert.deepEqual(
    api.sent.map((it) => [it.id, it.version]),
    [
      [1, 1],
      [8, 4],
    ],
  )
})

test("a change of a text that has changed is refused with the summary in use, and can then replace it", async () => {
  const current = summary({ id: 8, version: 2, content: "Ann leaves." })
  const actions = new SummaryActions({ api: apiOf(current) })
  const mine = { content: "Ann sleeps." }

  await assert.rejects(actions.change(summary(), mine), { code: "edit_conflict", current })
  const kept = await actions.change(current, mine)

  assert.equal(kept.content, "Ann sleeps.")
})

test("a change is not sent forever", async () => {
  let version = 1
  const api = {
    async changeSummary() {
      version += 1
      throw conflictWith(summary({ version }))
    },
  }

  await assert.rejects(new SummaryActions({ api }).change(summary(), { content: "x" }), { code: "edit_conflict" })

  assert.equal(version, 4)
})

test("each action has its endpoint", async () => {
  const sent = []
  const fetch = async (path, { method, body }) => {
    sent.push([method, path, body])
    return new Response(JSON.stringify({ data: [] }), { status: 200 })
  }
  const actions = new SummaryActions({ api: new Api({ fetch }) })

  assert.deepEqual(await actions.list(5), [])
  await actions.summarize(5)
  await actions.change(summary({ version: 3 }), { content: "x" })
  await actions.restore(summary({ id: 9 }))

  assert.deepEqual(sent, [
    ["GET", "/api/conversations/5/summaries", undefined],
    ["POST", "/api/conversations/5/summaries", undefined],
    ["PATCH", "/api/summaries/1", JSON.stringify({ content: "x", expected_version: 3 })],
    ["POST", "/api/summaries/9/restore", undefined],
  ])
})

test("versions are compared with their pinned facts", () => {
  assert.equal(fullText(summary()), "Ann arrives.\n• Ann has a dog.")
  assert.equal(fullText(summary({ pinned_facts: [] })), "Ann arrives.")
})
