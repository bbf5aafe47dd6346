// Pruning and importing memories: the rules of the dialog, who may do it, and what is sent.
import assert from "node:assert/strict"
import test from "node:test"
import MemoryActions from "../../static/js/actions/memories.js"
import { mayReplaceAll } from "../../static/js/models/memories/memory_rights.js"
import { pruneRules } from "../../static/js/models/memories/prune_rules.js"

test("an empty field is no rule", () => {
  const texts = { older_than_days: " ", keep: "100", keep_importance: "0.55" }

  assert.deepEqual(pruneRules(texts), { keep: 100, keep_importance: 0.55 })
  assert.deepEqual(pruneRules({ older_than_days: "", keep: "", keep_importance: "" }), {})
})

test("a value outside of its range is not allowed", () => {
  const wrong = [["older_than_days", "-1"], ["older_than_days", "1.5"], ["keep", "x"], ["keep_importance", "1.1"]]

  assert.deepEqual(
    wrong.map(([name, text]) => pruneRules({ [name]: text })),
    [null, null, null, null],
  )
})

test("moderators of a space that is not archived may prune and import", () => {
  const may = (my_role, status = "active") => mayReplaceAll({ my_role, status })

  assert.deepEqual(["guest", "member", "moderator", "owner", "admin"].map((role) => may(role)), [false, false, true, true, true])
  assert.equal(may("owner", "archived"), false)
})

test("a count is a dry run, and only the deletion is not", async () => {
  const sent = []
  const api = {
    async pruneMemories(spaceId, body) {
      sent.push([spaceId, body])
      return { deleted: 4 }
    },
  }
  const memories = new MemoryActions({ api, store: {} })

  assert.equal(await memories.countPruned(3, { keep: 10 }), 4)
  assert.equal(await memories.prune(3, { keep: 10 }), 4)

  assert.deepEqual(sent, [
    [3, { keep: 10, dry_run: true }],
    [3, { keep: 10, dry_run: false }],
  ])
})
