// The socket: what was subscribed is subscribed again, from where one was; a dead line is noticed.
import assert from "node:assert/strict"
import test from "node:test"
import Socket from "../../static/js/socket.js"
import { backoff } from "../../static/js/base/timing.js"
import { stopTimers } from "./support.mjs"

class Line {
  static all = []
  sent = []

  constructor() {
    Line.all.push(this)
  }
  send(text) {
    this.sent.push(JSON.parse(text))
  }
  close() {
    this.isClosed = true
  }
  open() {
    this.onopen()
  }
  answer(op, fields) {
    this.onmessage({
      data: JSON.stringify({ re: this.sent.findLast((frame) => frame.op === op).id, ok: true, ...fields }),
    })
  }
  push(event) {
    this.onmessage({ data: JSON.stringify(event) })
  }
}

function connect(t) {
  const tick = stopTimers(t)
  Line.all = []
  const socket = new Socket({ url: "ws://x/ws", WebSocket: Line })
  t.after(() => socket.stop())
  socket.start()
  return { socket, tick, line: () => Line.all.at(-1) }
}

const subscriptions = (line) => line.sent.filter(({ op }) => op === "subscribe")
const turn = () => new Promise((resolve) => setImmediate(resolve))

test("a subscription made before the line is open is sent when it is", (t) => {
  const { socket, line } = connect(t)

  socket.subscribe(7, () => null)
  line().open()

  assert.deepEqual(
    subscriptions(line()).map(({ conversation_id, after_rev }) => [conversation_id, after_rev]),
    [[7, undefined]],
  )
})

test("after a break it subscribes again with the last rev", async (t) => {
  const { socket, tick, line } = connect(t)
  let rev = null
  socket.on("snapshot", ({ answer }) => {
    rev = answer.rev
  })
  socket.subscribe(7, () => rev)
  line().open()
  line().answer("subscribe", { rev: 12, snapshot: {} })
  await turn()

  socket.interrupt()
  tick(60_000)
  line().open()

  assert.equal(Line.all.length, 2)
  assert.equal(subscriptions(line())[0].after_rev, 12)
})

test("asking again while an answer is under way asks once", (t) => {
  const { socket, line } = connect(t)
  socket.subscribe(7, () => 3)
  line().open()

  socket.resubscribe(7)
  socket.resubscribe(7)

  assert.equal(subscriptions(line()).length, 1)
})

test("an answer for a conversation that was left is dropped", async (t) => {
  const { socket, line } = connect(t)
  let answers = 0
  socket.on("snapshot", () => {
    answers += 1
  })
  socket.subscribe(7, () => null)
  line().open()

  socket.unsubscribe(7)
  line().answer("subscribe", { rev: 1, snapshot: {} })
  await turn()

  assert.equal(answers, 0)
})

test("a line that does not answer a ping is given up", async (t) => {
  const { socket, tick, line } = connect(t)
  line().open()

  tick(20_000)
  tick(10_000)
  await turn()

  assert.equal(Line.all[0].isClosed, true)
  assert.equal(socket.state, "waiting")
})

test("a refused subscription is told", async (t) => {
  const { socket, line } = connect(t)
  const refused = []
  socket.on("refused", ({ error }) => refused.push(error.code))
  socket.subscribe(7, () => null)
  line().open()

  line().onmessage({ data: JSON.stringify({ re: line().sent[0].id, error: { code: "not_found" } }) })
  await turn()

  assert.deepEqual(refused, ["not_found"])
})

test("a subscription that cannot be had now is asked for again, ever more rarely", async (t) => {
  const { socket, tick, line } = connect(t)
  const refused = []
  socket.on("refused", ({ error }) => refused.push(error.code))
  socket.subscribe(7, () => 3)
  line().open()
  const refuse = async () => {
    const { id } = subscriptions(line()).at(-1)
    line().onmessage({ data: JSON.stringify({ re: id, error: { code: "internal" } }) })
    await turn()
  }

  await refuse()
  tick(500)
  const afterOne = subscriptions(line()).length
  await refuse()
  tick(499)
  const tooSoon = subscriptions(line()).length
  tick(501)

  assert.deepEqual([afterOne, tooSoon, subscriptions(line()).length], [2, 2, 3])
  assert.deepEqual(subscriptions(line()).at(-1).after_rev, 3)
  assert.deepEqual(refused, [])
  socket.unsubscribe(7)
  await refuse()
  tick(60_000)
  assert.equal(subscriptions(line()).length, 3)
})

test("events are handed on as they come", (t) => {
  const { socket, line } = connect(t)
  const seen = []
  socket.on("event", ({ type }) => seen.push(type))
  line().open()

  line().push({ type: "typing_start" })
  line().push({ type: "stream_chunk" })

  assert.deepEqual(seen, ["typing_start", "stream_chunk"])
})

test("the wait grows, is drawn, and is never longer than its cap", () => {
  assert.ok(backoff(0, () => 1) <= 500)
  assert.ok(backoff(3, () => 0) >= 2000)
  assert.ok(backoff(3, () => 0) < backoff(3, () => 1))
  assert.equal(
    backoff(30, () => 1),
    15_000,
  )
})

test("a list of spaces waits until each of them is heard", async (t) => {
  const { socket, line } = connect(t)
  line().open()
  let isHeard = false

  socket.subscribeSpaces([1, 2]).then(() => {
    isHeard = true
  })
  await turn()
  const before = isHeard
  for (const { id, op } of line().sent)
    if (op === "subscribe_space") line().onmessage({ data: JSON.stringify({ re: id, ok: true }) })
  await turn()

  assert.deepEqual([before, isHeard], [false, true])
})

test("after a break it is ready again once the spaces are heard, and those that were lost are not asked for", async (t) => {
  const { socket, tick, line } = connect(t)
  let nReady = 0
  socket.on("ready", () => {
    nReady += 1
  })
  line().open()
  socket.subscribeSpaces([1, 2])
  socket.forgetSpace(2)

  socket.interrupt()
  tick(60_000)
  line().open()
  const asked = line().sent.filter(({ op }) => op === "subscribe_space")
  const before = nReady
  line().onmessage({ data: JSON.stringify({ re: asked[0].id, ok: true }) })
  await turn()

  assert.deepEqual(
    asked.map(({ space_id: id }) => id),
    [1],
  )
  assert.deepEqual([before, nReady], [0, 1])
})
