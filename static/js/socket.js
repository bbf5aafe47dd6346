// The WebSocket: connects, detects a lost connection, reconnects with back-off and jitter, and renews
// its subscriptions. No other module uses WebSockets.
//
// It speaks protocol 2, in which a piece of a reply names a handle in place of its conversation and
// run, and emits such a piece as a "stream_chunk" with both.
//
// Emits "event" (an event of the server), "snapshot" ({ conversationId, answer }), "state"
// ("connecting", "open", "waiting"), "refused" (a subscription is not allowed any more; one that is
// temporarily unavailable is requested again), "ready" (the connection is open and the spaces are
// subscribed, after a time in which events were missed: data without a `rev` must be read again),
// "connect_failed" (the connection could not be opened: the caller may check the session), "time" (the
// clock of the server: { time, sentAt, receivedAt }).
import Emitter from "./base/emitter.js"
import { backoff } from "./base/timing.js"

const PING_EVERY_MS = 20_000
const ANSWER_WITHIN_MS = 10_000
// A page shows nothing while it waits for its first connection.
const MAX_CONNECTION_WAIT_MS = 2000
const PROTOCOL = 2

export default class Socket extends Emitter {
  #url
  #WebSocket
  #webSocket = null
  #nextId = 1
  #pending = new Map()
  #conversations = new Map()
  // By id: a promise that resolves when the subscription was first answered.
  #spaces = new Map()
  // By handle: the conversation and the run whose text arrives under it.
  #streams = new Map()
  #attempt = 0
  #retryTimer = null
  #pingTimer = null
  #isStarted = false
  #away = false
  // Whether events may have been missed since data was read: the next connection must emit "ready".
  #hasGap = false
  state = "closed"

  constructor({ url, WebSocket = globalThis.WebSocket }) {
    super()
    this.#url = url
    this.#WebSocket = WebSocket
  }

  // Lifecycle

  start() {
    this.#isStarted = true
    if (!this.#webSocket) this.#open()
  }

  // Keeps the subscriptions; `start` renews them.
  stop() {
    this.#isStarted = false
    clearTimeout(this.#retryTimer)
    this.#drop()
    this.#setState("closed")
  }

  // Actions

  // `lastRev()` returns the revision to resume from; null requests the newest messages.
  subscribe(conversationId, lastRev) {
    this.#conversations.set(conversationId, { lastRev, isRequesting: false, nRefused: 0 })
    this.#requestSnapshot(conversationId)
  }

  unsubscribe(conversationId) {
    this.#conversations.delete(conversationId)
    this.#request("unsubscribe", { conversation_id: conversationId }).catch(() => {})
  }

  // Subscribes again with the last revision after a gap. Does nothing if a request is already pending.
  resubscribe(conversationId) {
    this.#requestSnapshot(conversationId)
  }

  // If a connection is being opened, resolves when it has opened or failed, at the latest after
  // MAX_CONNECTION_WAIT_MS. Resolves at once in any other state, and after a gap, because "ready" follows
  // then.
  async waitForConnection() {
    if (this.state !== "connecting" || this.#hasGap) return
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, MAX_CONNECTION_WAIT_MS)
      const remove = this.on("state", () => {
        clearTimeout(timer)
        remove()
        resolve()
      })
    })
  }

  // Resolves when the spaces are subscribed: data that is read afterwards misses no event. Without a
  // connection it resolves at once, and "ready" follows later.
  async subscribeSpaces(ids) {
    const added = ids.filter((id) => !this.#spaces.has(id))
    if (this.state !== "open") this.#hasGap = true
    const answered = this.#requestSpaces(added)
    for (const id of added) this.#spaces.set(id, answered)
    await Promise.all(ids.map((id) => this.#spaces.get(id)))
  }

  // The server ends the subscription; it is not renewed.
  dropSpace(id) {
    this.#spaces.delete(id)
  }

  typing(conversationId, active) {
    this.#request("typing", { conversation_id: conversationId, active }).catch(() => {})
  }

  away(away) {
    this.#away = away
    this.#request("away", { away }).catch(() => {})
  }

  // Closes a connection that is known to be lost, for example because the browser went offline.
  interrupt() {
    if (this.#webSocket) this.#onClose(this.#webSocket)
  }

  retryNow() {
    if (!this.#isStarted || this.#webSocket) return
    clearTimeout(this.#retryTimer)
    this.#open()
  }

  // Private

  #open() {
    this.#setState("connecting")
    const webSocket = new this.#WebSocket(`${this.#url}?protocol=${PROTOCOL}`)
    this.#webSocket = webSocket
    webSocket.onopen = () => this.#onOpen()
    webSocket.onmessage = ({ data }) => this.#onFrame(JSON.parse(data))
    webSocket.onclose = () => this.#onClose(webSocket)
  }

  #onOpen() {
    this.#attempt = 0
    this.#setState("open")
    this.#pingTimer = setInterval(() => this.#ping(), PING_EVERY_MS)
    if (this.#away) this.away(true)
    this.#resubscribeSpaces()
    for (const [id, subscription] of this.#conversations) {
      subscription.isRequesting = false
      this.#requestSnapshot(id)
    }
    this.#ping()
  }

  #onFrame(frame) {
    if (!("re" in frame)) return this.#onEvent(frame)
    const pending = this.#pending.get(frame.re)
    if (!pending) return
    this.#pending.delete(frame.re)
    clearTimeout(pending.timer)
    if (frame.ok) pending.resolve(frame)
    else pending.reject(frame.error)
    this.#bindStream(pending.conversationId, frame.snapshot?.stream)
  }

  #onEvent(frame) {
    if ("type" in frame) {
      if (frame.type === "typing_start") this.#bindStream(frame.conversation_id, frame)
      return this.emit("event", frame)
    }
    const stream = this.#streams.get(frame.h)
    if (stream) this.emit("event", { type: "stream_chunk", ...stream, offset: frame.o, delta: frame.d })
  }

  // The pieces that arrive under the handle `h` from now on belong to this run.
  #bindStream(conversation_id, stream) {
    if (stream?.h !== undefined) this.#streams.set(stream.h, { conversation_id, run_id: stream.run_id })
  }

  #onClose(webSocket) {
    if (webSocket !== this.#webSocket) return
    const wasOpen = this.state === "open"
    this.#drop()
    if (!this.#isStarted) return
    this.#setState("waiting")
    if (!wasOpen) this.emit("connect_failed")
    this.#retryTimer = setTimeout(() => this.retryNow(), backoff(this.#attempt))
    this.#attempt += 1
  }

  #drop() {
    clearInterval(this.#pingTimer)
    const webSocket = this.#webSocket
    this.#webSocket = null
    if (this.state === "open") this.#hasGap = true
    if (webSocket) {
      webSocket.onopen = webSocket.onmessage = webSocket.onclose = null
      webSocket.close()
    }
    for (const { reject, timer } of this.#pending.values()) {
      clearTimeout(timer)
      reject({ code: "network" })
    }
    this.#pending.clear()
    this.#streams.clear()
  }

  async #requestSpaces(ids) {
    await Promise.all(ids.map((id) => this.#request("subscribe_space", { space_id: id }).catch(() => {})))
  }

  async #resubscribeSpaces() {
    const webSocket = this.#webSocket
    if (!this.#hasGap) return
    await this.#requestSpaces([...this.#spaces.keys()])
    if (webSocket !== this.#webSocket) return
    this.#hasGap = false
    this.emit("ready")
  }

  async #requestSnapshot(conversationId) {
    const subscription = this.#conversations.get(conversationId)
    if (!subscription || subscription.isRequesting || this.state !== "open") return
    subscription.isRequesting = true
    const rev = subscription.lastRev()
    try {
      const answer = await this.#request("subscribe", {
        conversation_id: conversationId,
        ...(rev === null ? {} : { after_rev: rev }),
      })
      subscription.isRequesting = false
      subscription.nRefused = 0
      if (this.#conversations.get(conversationId) === subscription)
        this.emit("snapshot", { conversationId, answer })
    } catch (error) {
      subscription.isRequesting = false
      // The next connection requests it again.
      if (error?.code === "network") return
      if (error?.code === "not_found") this.emit("refused", { conversationId, error })
      else this.#retryLater(conversationId, subscription)
    }
  }

  // Temporary failure: tries again after a delay.
  #retryLater(conversationId, subscription) {
    const again = () => {
      if (this.#conversations.get(conversationId) === subscription) this.#requestSnapshot(conversationId)
    }
    setTimeout(again, backoff(subscription.nRefused))
    subscription.nRefused += 1
  }

  async #ping() {
    const sentAt = Date.now()
    try {
      const { time } = await this.#request("ping", {})
      this.emit("time", { time, sentAt, receivedAt: Date.now() })
    } catch (error) {
      if (error?.code === "no_answer") this.interrupt()
    }
  }

  #request(op, fields) {
    if (this.state !== "open") return Promise.reject({ code: "network" })
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id)
        reject({ code: "no_answer" })
      }, ANSWER_WITHIN_MS)
      this.#pending.set(id, { resolve, reject, timer, conversationId: fields.conversation_id })
      this.#webSocket.send(JSON.stringify({ id, op, ...fields }))
    })
  }

  #setState(state) {
    if (this.state === state) return
    this.state = state
    this.emit("state", state)
  }
}
