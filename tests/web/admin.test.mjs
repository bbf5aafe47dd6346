// Administration: token use, and the list of runs.
import assert from "node:assert/strict"
import test from "node:test"
import AdminActions from "../../static/js/actions/admin.js"
import Api from "../../static/js/api.js"
import { randomPassword } from "../../static/js/base/ids.js"
import { amount } from "../../static/js/base/numbers.js"
import { duration } from "../../static/js/base/time.js"
import { debounce } from "../../static/js/base/timing.js"
import RunHistory, { ERRORS } from "../../static/js/models/runs/run_history.js"
import { ALL, byDay, bySpace } from "../../static/js/models/runs/token_use.js"
import { parse } from "../../static/js/router.js"
import en from "../../static/js/strings/en.js"
import { stopTimers } from "./support.mjs"

function row(day, id, name, prompt, completion, { runs = 1, failed = 0 } = {}) {
  const tokens = { prompt_tokens: prompt, completion_tokens: completion }
  return { day, space_id: id, space_name: name, ...tokens, runs, failed }
}

const USE = {
  from: "2026-11-19",
  to: "2026-11-21",
  data: [
    row("2026-11-21", 2, "Inn", 10, 0),
    row("2026-11-21", 1, "Harbor", 30, 10, { runs: 3, failed: 1 }),
    row("2026-11-19", 1, "Harbor", 40, 0),
    row("2026-11-19", null, null, 5, 5),
  ],
}

test("token use is summed by space, the largest first, with a share of the largest", () => {
  const reported = ({ key, name, prompt_tokens: n, runs, share }) => [key, name, n, runs, share]
  const lines = bySpace(USE).map(reported)

  assert.deepEqual(lines, [
    ["1", "Harbor", 70, 4, 1],
    ["2", "Inn", 10, 1, 0.125],
    ["rest", null, 5, 1, 0.125],
  ])
})

test("every day has a line, the newest first", () => {
  const lines = (choice) => byDay(USE, choice).map(({ day, prompt_tokens: n, failed }) => [day, n, failed])

  assert.deepEqual(lines(ALL), [
    ["2026-11-21", 40, 1],
    ["2026-11-20", 0, 0],
    ["2026-11-19", 45, 0],
  ])
  assert.deepEqual(
    lines("2").map(([, n]) => n),
    [10, 0, 0],
  )
  assert.deepEqual(
    lines("rest").map(([, n]) => n),
    [0, 0, 5],
  )
})

test("a line without use has no bar", () => {
  const quiet = { ...USE, data: [] }

  assert.deepEqual(bySpace(quiet), [])
  assert.deepEqual(
    byDay(quiet).map(({ share }) => share),
    [0, 0, 0],
  )
})

const page = (ids, hasMore = false, more = {}) => ({
  data: ids.map((id) => ({ id, ...more })),
  has_more: hasMore,
})
const ids = (history) => history.runs.map(({ id }) => id).join("")

test("a refresh replaces the runs that it covers and keeps older ones", () => {
  const history = new RunHistory()
  history.refresh(page(["f", "e"], true))
  history.append(page(["d", "c"], true))
  history.append(page(["c", "b"], false))

  history.refresh(page(["g", "f", "d"], true, { status: "succeeded" }))

  assert.equal(ids(history), "gfdcb")
  assert.equal(history.runs[1].status, "succeeded")
  assert.equal(history.hasMore, false)
  assert.equal(history.oldest, "b")
})

test("a refresh that reaches the end drops older runs", () => {
  const history = new RunHistory()
  history.refresh(page(["c", "b"], true))
  history.append(page(["a"], true))

  history.refresh(page(["c"], false))

  assert.equal(ids(history), "c")
  assert.equal(history.hasMore, false)
})

test("a refresh asks for all shown runs, within the limits of the server", () => {
  const history = new RunHistory()
  assert.equal(history.refreshLimit, 50)
  history.append(page(Array.from({ length: 120 }, (_, n) => `a${n}`)))
  assert.equal(history.refreshLimit, 120)
  history.append(page(Array.from({ length: 120 }, (_, n) => `b${n}`)))
  assert.equal(history.refreshLimit, 200)
  history.clear()
  assert.deepEqual([history.runs, history.hasMore, history.oldest], [[], false, null])
})

test("runs can be filtered by every error code", () => {
  const reported = Object.keys(en).filter((key) => key.startsWith("run_error.") && key !== "run_error.unexpected")

  assert.deepEqual(
    reported.map((key) => key.slice("run_error.".length)).sort(),
    [...ERRORS].sort(),
  )
})

test("empty parameters are not sent", async () => {
  const requests = []
  const fetch = async (url) => {
    requests.push(url)
    return new Response("{}")
  }
  const admin = new AdminActions({ api: new Api({ fetch }), store: {} })

  await admin.users({ text: "an & n", status: "" })
  const all = { status: "", kind: "", error: "", space: null, conversation: null }
  await admin.runs({ ...all, status: "failed", space: { id: 4 } }, { before: "x" })
  await admin.runs(all)

  assert.deepEqual(requests, [
    "/api/admin/users?q=an+%26+n",
    "/api/admin/runs?status=failed&space_id=4&before=x",
    "/api/admin/runs",
  ])
})

test("an admin's own name changes at once", async () => {
  const store = {
    user: { id: 1, display_name: "Ann", role: "admin" },
    setUser(user) {
      this.user = user
    },
  }
  const api = { changeUser: async (id, fields) => ({ id, display_name: "Ann", role: "admin", ...fields }) }
  const admin = new AdminActions({ api, store })

  await admin.changeUser({ id: 2 }, { role: "user" })
  assert.equal(store.user.role, "admin")
  await admin.changeUser({ id: 1 }, { role: "user" })
  assert.equal(store.user.role, "user")
})

test("an address names a page of the administration", () => {
  assert.deepEqual(parse("/admin"), { name: "admin", part: "overview" })
  assert.deepEqual(parse("/admin/runs"), { name: "admin", part: "runs" })
})

test("a generated password is long and never the same", () => {
  const made = new Set(Array.from({ length: 100 }, () => randomPassword()))

  assert.equal(made.size, 100)
  assert.ok([...made].every((it) => /^[a-zA-Z0-9]{16}$/.test(it) && !/[lIOo0125S8BZ]/.test(it)))
})

test("long numbers are abbreviated, and durations have one unit", () => {
  assert.deepEqual([0, 99_999, 1_234_567].map(amount), ["0", "99,999", "1.2M"])
  assert.deepEqual([-5, 999, 61_000, 7_200_000, 200_000_000].map(duration), [
    "0 seconds",
    "0 seconds",
    "1 minute",
    "2 hours",
    "2 days",
  ])
})

test("debounced calls run once, after the last one", (t) => {
  const tick = stopTimers(t)
  let n = 0
  const act = debounce(() => {
    n += 1
  }, 100)

  act()
  tick(90)
  act()
  tick(90)
  assert.equal(n, 0)
  tick(10)
  assert.equal(n, 1)
})
