// The socket: subscriptions are renewed after a lost connection, which is detected by pings.
import assert from "node:assert/strict"
import test from "node:test"
import Socket from "../../static/js/socket.js"
import { backoff } from "../../static/js/base/timing.js"
import { stopTimers } from "./support.mjs"

class FakeWebSocket {
  static all = []
  sent = []

  constructor(url) {
    this.url = url
    FakeWebSocket.all.push(this)
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
  FakeWebSocket.all = []
  const socket = new Socket({ url: "ws://x/ws", WebSocket: FakeWebSocket })
  t.after(() => socket.stop())
  socket.start()
  return { socket, tick, connection: () => FakeWebSocket.all.at(-1) }
}

const subscriptions = (connection) => connection.sent.filter(({ op }) => op === "subscribe")
const turn = () => new Promise((resolve) => setImmediate(resolve))

test("a subscription made before the connection is open is sent when it opens", (t) => {
  const { socket, connection } = connect(t)

  socket.subscribe(7, () => null)
  connection().open()

  assert.deepEqual(
    subscriptions(connection()).map(({ conversation_id, after_rev }) => [conversation_id, after_rev]),
    [[7, undefined]],
  )
})

test("after a lost connection it subscribes again with the last rev", async (t) => {
  const { socket, tick, connection } = connect(t)
  let rev = null
  socket.on("snapshot", ({ answer }) => {
    rev = answer.rev
  })
  socket.subscribe(7, () => rev)
  connection().open()
  connection().answer("subscribe", { rev: 12, snapshot: {} })
  await turn()

  socket.interrupt()
  tick(60_000)
  connection().open()

  assert.equal(FakeWebSocket.all.length, 2)
  assert.equal(subscriptions(connection())[0].after_rev, 12)
})

test("a second request during a pending one is not sent", (t) => {
  const { socket, connection } = connect(t)
  socket.subscribe(7, () => 3)
  connection().open()

  socket.resubscribe(7)
  socket.resubscribe(7)

  assert.equal(subscriptions(connection()).length, 1)
})

test("a response for a closed conversation is dropped", async (t) => {
  const { socket, connection } = connect(t)
  let answers = 0
  socket.on("snapshot", () => {
    answers += 1
  })
  socket.subscribe(7, () => null)
  connection().open()

  socket.unsubscribe(7)
  connection().answer("subscribe", { rev: 1, snapshot: {} })
  await turn()

  assert.equal(answers, 0)
})

test("a connection that does not answer a ping is closed", async (t) => {
  const { socket, tick, connection } = connect(t)
  connection().open()

  tick(20_000)
  tick(10_000)
  await turn()

  assert.equal(FakeWebSocket.all[0].isClosed, true)
  assert.equal(socket.state, "waiting")
})

test("a refused subscription is reported", async (t) => {
  const { socket, connection } = connect(t)
  const refused = []
  socket.on("refused", ({ error }) => refused.push(error.code))
  socket.subscribe(7, () => null)
  connection().open()

  connection().onmessage({ data: JSON.stringify({ re: connection().sent[0].id, error: { code: "not_found" } }) })
  await turn()

  assert.deepEqual(refused, ["not_found"])
})

test("a subscription that is temporarily unavailable is requested again with increasing delays", async (t) => {
  const { socket, tick, connection } = connect(t)
  const refused = []
  socket.on("refused", ({ error }) => refused.push(error.code))
  socket.subscribe(7, () => 3)
  connection().open()
  const refuse = async () => {
    const { id } = subscriptions(connection()).at(-1)
    connection().onmessage({ data: JSON.stringify({ re: id, error: { code: "internal" } }) })
    await turn()
  }

  await refuse()
  tick(500)
  const afterOne = subscriptions(connection()).length
  await refuse()
  tick(499)
  const tooSoon = subscriptions(connection()).length
  tick(501)

  assert.deepEqual([afterOne, tooSoon, subscriptions(connection()).length], [2, 2, 3])
  assert.deepEqual(subscriptions(connection()).at(-1).after_rev, 3)
  assert.deepEqual(refused, [])
  socket.unsubscribe(7)
  await refuse()
  tick(60_000)
  assert.equal(subscriptions(connection()).length, 3)
})

test("events are emitted unchanged", (t) => {
  const { socket, connection } = connect(t)
  const seen = []
  socket.on("event", (event) => seen.push(event))
  connection().open()
  const events = [{ type: "typing_start", conversation_id: 7, run_id: "a", h: 7 }, { type: "typing_stop" }]

  for (const event of events) connection().push(event)

  assert.deepEqual(seen, events)
})

function chunks(socket) {
  const seen = []
  socket.on("event", (event) => event.type === "stream_chunk" && seen.push(event))
  return seen
}

const chunk = (conversation_id, run_id, offset, delta) => ({
  type: "stream_chunk",
  conversation_id,
  run_id,
  offset,
  delta,
})

test("the socket asks for protocol 2, also after a lost connection", (t) => {
  const { socket, tick, connection } = connect(t)
  connection().open()

  socket.interrupt()
  tick(60_000)

  assert.deepEqual(
    FakeWebSocket.all.map(({ url }) => url),
    ["ws://x/ws?protocol=2", "ws://x/ws?protocol=2"],
  )
})

test("a short chunk gets the conversation and the run of its handle", (t) => {
  const { socket, connection } = connect(t)
  const seen = chunks(socket)
  connection().open()

  connection().push({ type: "typing_start", conversation_id: 7, run_id: "a", h: 3 })
  connection().push({ type: "typing_start", conversation_id: 8, run_id: "b", h: 4 })
  connection().push({ h: 3, o: 0, d: "One" })
  connection().push({ h: 4, o: 0, d: "Two" })
  connection().push({ type: "typing_start", conversation_id: 7, run_id: "c", h: 3 })
  connection().push({ h: 3, o: 0, d: "Three" })

  assert.deepEqual(seen, [chunk(7, "a", 0, "One"), chunk(8, "b", 0, "Two"), chunk(7, "c", 0, "Three")])
})

test("a snapshot gives the handle of the run that is being written", async (t) => {
  const { socket, connection } = connect(t)
  const seen = chunks(socket)
  socket.subscribe(7, () => null)
  connection().open()

  connection().answer("subscribe", { rev: 1, snapshot: { stream: { h: 3, run_id: "a", text: "One" } } })
  connection().push({ h: 3, o: 3, d: " two" })

  assert.deepEqual(seen, [chunk(7, "a", 3, " two")])
})

test("a handle is not valid on the next connection", (t) => {
  const { socket, tick, connection } = connect(t)
  const seen = chunks(socket)
  connection().open()
  connection().push({ type: "typing_start", conversation_id: 7, run_id: "a", h: 3 })

  socket.interrupt()
  tick(60_000)
  connection().open()
  connection().push({ h: 3, o: 0, d: "One" })

  assert.deepEqual(seen, [])
})

test("the delay grows, is random, and never exceeds its maximum", () => {
  assert.ok(backoff(0, () => 1) <= 500)
  assert.ok(backoff(3, () => 0) >= 2000)
  assert.ok(backoff(3, () => 0) < backoff(3, () => 1))
  assert.equal(
    backoff(30, () => 1),
    15_000,
  )
})

test("a list of spaces resolves when each of them is subscribed", async (t) => {
  const { socket, connection } = connect(t)
  connection().open()
  let isHeard = false

  socket.subscribeSpaces([1, 2]).then(() => {
    isHeard = true
  })
  await turn()
  const before = isHeard
  for (const { id, op } of connection().sent)
    if (op === "subscribe_space") connection().onmessage({ data: JSON.stringify({ re: id, ok: true }) })
  await turn()

  assert.deepEqual([before, isHeard], [false, true])
})

// Loads the spaces as the client does when it starts. `events` contains the state of the socket at the
// request for the list, and each "ready".
function loadSpaces(socket) {
  const events = []
  socket.on("ready", () => events.push("ready"))
  const loaded = socket.waitForConnection().then(() => {
    events.push(socket.state)
    return socket.subscribeSpaces([1])
  })
  return { events, loaded }
}

test("what is read after the first connection has opened is not read again", async (t) => {
  const { socket, connection } = connect(t)
  const { events, loaded } = loadSpaces(socket)
  await turn()
  const before = [...events]
  connection().open()
  await turn()
  connection().answer("subscribe_space")
  await loaded

  assert.deepEqual([before, events], [[], ["open"]])
})

test("data that was read before the connection opened is read again", async (t) => {
  const { socket, tick, connection } = connect(t)
  const { events, loaded } = loadSpaces(socket)
  tick(2000)
  await loaded
  connection().open()
  connection().answer("subscribe_space")
  await turn()

  assert.deepEqual(events, ["connecting", "ready"])
})

test("after a first connection that fails, ready follows when the next one is open", async (t) => {
  const { socket, tick, connection } = connect(t)
  const { events, loaded } = loadSpaces(socket)
  socket.interrupt()
  await loaded
  tick(60_000)
  connection().open()
  connection().answer("subscribe_space")
  await turn()

  assert.deepEqual(events, ["waiting", "ready"])
})

test("after a gap no caller waits for the connection", async (t) => {
  const { socket, tick, connection } = connect(t)
  connection().open()
  socket.interrupt()
  tick(60_000)

  await socket.waitForConnection()

  assert.equal(socket.state, "connecting")
})

test("a second caller waits for the subscription of the first one", async (t) => {
  const { socket, connection } = connect(t)
  connection().open()
  let nResolved = 0

  for (let i = 0; i < 2; i += 1) socket.subscribeSpaces([1]).then(() => (nResolved += 1))
  await turn()
  const before = nResolved
  connection().answer("subscribe_space")
  await turn()

  assert.deepEqual([before, nResolved], [0, 2])
  assert.equal(connection().sent.filter(({ op }) => op === "subscribe_space").length, 1)
})

test("after a lost connection it is ready when the spaces are subscribed, without those that were removed", async (t) => {
  const { socket, tick, connection } = connect(t)
  let nReady = 0
  socket.on("ready", () => {
    nReady += 1
  })
  connection().open()
  socket.subscribeSpaces([1, 2])
  socket.dropSpace(2)

  socket.interrupt()
  tick(60_000)
  connection().open()
  const requests = connection().sent.filter(({ op }) => op === "subscribe_space")
  const before = nReady
  connection().onmessage({ data: JSON.stringify({ re: requests[0].id, ok: true }) })
  await turn()

  assert.deepEqual(
    requests.map(({ space_id: id }) => id),
    [1],
  )
  assert.deepEqual([before, nReady], [0, 1])
})
