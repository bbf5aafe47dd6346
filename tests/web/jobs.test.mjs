// Background jobs: which are shown, and which branch is opened when it is ready.
import assert from "node:assert/strict"
import { test } from "node:test"
import JobActions from "../../static/js/actions/jobs.js"

function createActions(jobs = []) {
  const taken = []
  const api = { jobs: async () => ({ data: jobs }) }
  const store = { updateJob: (job) => taken.push(job) }
  return { actions: new JobActions({ api, store }), taken }
}

test("running jobs survive a reload of the page", async () => {
  const running = { id: 2, kind: "branch", status: "running" }
  const { actions, taken } = createActions([running, { id: 1, kind: "branch", status: "succeeded" }])

  await actions.load()

  assert.deepEqual(taken, [running])
})

test("only a branch that was started in this tab is opened, and once", () => {
  const { actions } = createActions()
  const mine = { id: 2, kind: "branch", status: "running" }

  actions.follow(mine)

  assert.equal(actions.unfollow({ id: 3 }), false)
  assert.equal(actions.unfollow(mine), true)
  assert.equal(actions.unfollow(mine), false)
})

test("imports are not shown as jobs, and deletions cannot be canceled", () => {
  const { actions } = createActions()

  assert.equal(actions.isShown({ kind: "import_chat" }), false)
  assert.equal(actions.isShown({ kind: "delete_space" }), true)
  assert.equal(actions.canCancel({ kind: "delete_space" }), false)
  assert.equal(actions.canCancel({ kind: "regenerate_branch" }), true)
})
