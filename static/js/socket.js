// The WebSocket: connects, notices a dead line, comes back with back-off and jitter, and subscribes
// again to what was subscribed. Nothing else in the client talks WebSocket.
//
// Emits: "event" (any event of the server), "snapshot" ({ conversationId, answer }),
// "state" ("connecting", "open", "waiting"), "refused" (a subscription that is not allowed any more;
// one that cannot be had now is asked for again),
// "ready" (the line is open again, and the spaces are heard: what has no `rev` may be read anew),
// "lost" (a line could not be opened: the caller may ask whether the session still lives),
// "time" (what the server's clock said: { time, sentAt, receivedAt }).
import Emitter from "./base/emitter.js"
import { backoff } from "./base/timing.js"

const PING_EVERY_MS = 20_000
const ANSWER_WITHIN_MS = 10_000

export default class Socket extends Emitter {
  #url
  #WebSocket
  #line = null
  #nextId = 1
  #waiting = new Map()
  #conversations = new Map()
  #spaces = new Set()
  #attempt = 0
  #retryTimer = null
  #pingTimer = null
  #isWanted = false
  #away = false
  #wasOpen = false
  state = "closed"

  constructor({ url, WebSocket = globalThis.WebSocket }) {
    super()
    this.#url = url
    this.#WebSocket = WebSocket
  }

  // Lifecycle

  start() {
    this.#isWanted = true
    if (!this.#line) this.#open()
  }

  // What was subscribed is remembered: `start` goes on with it.
  stop() {
    this.#isWanted = false
    clearTimeout(this.#retryTimer)
    this.#drop()
    this.#setState("closed")
  }

  // Actions

  // `lastRev()` tells from where to resume; null asks for the newest messages.
  subscribe(conversationId, lastRev) {
    this.#conversations.set(conversationId, { lastRev, isAsking: false, nRefused: 0 })
    this.#askFor(conversationId)
  }

  unsubscribe(conversationId) {
    this.#conversations.delete(conversationId)
    this.#ask("unsubscribe", { conversation_id: conversationId }).catch(() => {})
  }

  // Something was missed: subscribe again with the last rev. Asking twice at once is asking once.
  resubscribe(conversationId) {
    this.#askFor(conversationId)
  }

  // Resolves when the spaces are heard: what is read from then on misses nothing. While the line is
  // down it resolves at once, and "ready" follows later.
  async subscribeSpaces(ids) {
    const unheard = ids.filter((id) => !this.#spaces.has(id))
    for (const id of unheard) this.#spaces.add(id)
    await this.#hearSpaces(unheard)
  }

  // The server has ended it already, or will: it is not asked for again.
  forgetSpace(id) {
    this.#spaces.delete(id)
  }

  typing(conversationId, active) {
    this.#ask("typing", { conversation_id: conversationId, active }).catch(() => {})
  }

  away(away) {
    this.#away = away
    this.#ask("away", { away }).catch(() => {})
  }

  // The line is known to be dead (the browser went offline), or a try now is worth it.
  interrupt() {
    if (this.#line) this.#onClose(this.#line)
  }

  retryNow() {
    if (!this.#isWanted || this.#line) return
    clearTimeout(this.#retryTimer)
    this.#open()
  }

  // Private

  #open() {
    this.#setState("connecting")
    const line = new this.#WebSocket(this.#url)
    this.#line = line
    line.onopen = () => this.#onOpen()
    line.onmessage = ({ data }) => this.#onFrame(JSON.parse(data))
    line.onclose = () => this.#onClose(line)
  }

  #onOpen() {
    this.#attempt = 0
    this.#setState("open")
    this.#pingTimer = setInterval(() => this.#ping(), PING_EVERY_MS)
    if (this.#away) this.away(true)
    this.#hearSpacesAgain()
    for (const [id, subscription] of this.#conversations) {
      subscription.isAsking = false
      this.#askFor(id)
    }
    this.#ping()
  }

  #onFrame(frame) {
    if (!("re" in frame)) return this.emit("event", frame)
    const waiting = this.#waiting.get(frame.re)
    if (!waiting) return
    this.#waiting.delete(frame.re)
    clearTimeout(waiting.timer)
    if (frame.ok) waiting.resolve(frame)
    else waiting.reject(frame.error)
  }

  #onClose(line) {
    if (line !== this.#line) return
    const wasOpen = this.state === "open"
    this.#drop()
    if (!this.#isWanted) return
    this.#setState("waiting")
    if (!wasOpen) this.emit("lost")
    this.#retryTimer = setTimeout(() => this.retryNow(), backoff(this.#attempt))
    this.#attempt += 1
  }

  #drop() {
    clearInterval(this.#pingTimer)
    const line = this.#line
    this.#line = null
    if (line) {
      line.onopen = line.onmessage = line.onclose = null
      line.close()
    }
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer)
      reject({ code: "network" })
    }
    this.#waiting.clear()
  }

  async #hearSpaces(ids) {
    await Promise.all(ids.map((id) => this.#ask("subscribe_space", { space_id: id }).catch(() => {})))
  }

  async #hearSpacesAgain() {
    const line = this.#line
    // Before the first list of spaces there is nothing to read anew.
    const isFirst = !this.#wasOpen
    this.#wasOpen = true
    if (isFirst && this.#spaces.size === 0) return
    await this.#hearSpaces([...this.#spaces])
    if (line === this.#line) this.emit("ready")
  }

  async #askFor(conversationId) {
    const subscription = this.#conversations.get(conversationId)
    if (!subscription || subscription.isAsking || this.state !== "open") return
    subscription.isAsking = true
    const rev = subscription.lastRev()
    try {
      const answer = await this.#ask("subscribe", {
        conversation_id: conversationId,
        ...(rev === null ? {} : { after_rev: rev }),
      })
      subscription.isAsking = false
      subscription.nRefused = 0
      if (this.#conversations.get(conversationId) === subscription)
        this.emit("snapshot", { conversationId, answer })
    } catch (error) {
      subscription.isAsking = false
      // The next line asks again by itself.
      if (error?.code === "network") return
      if (error?.code === "not_found") this.emit("refused", { conversationId, error })
      else this.#askLater(conversationId, subscription)
    }
  }

  // The server cannot say now what it will be able to say in a moment.
  #askLater(conversationId, subscription) {
    const again = () => {
      if (this.#conversations.get(conversationId) === subscription) this.#askFor(conversationId)
    }
    setTimeout(again, backoff(subscription.nRefused))
    subscription.nRefused += 1
  }

  async #ping() {
    const sentAt = Date.now()
    try {
      const { time } = await this.#ask("ping", {})
      this.emit("time", { time, sentAt, receivedAt: Date.now() })
    } catch (error) {
      if (error?.code === "no_answer") this.interrupt()
    }
  }

  #ask(op, fields) {
    if (this.state !== "open") return Promise.reject({ code: "network" })
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id)
        reject({ code: "no_answer" })
      }, ANSWER_WITHIN_MS)
      this.#waiting.set(id, { resolve, reject, timer })
      this.#line.send(JSON.stringify({ id, op, ...fields }))
    })
  }

  #setState(state) {
    if (this.state === state) return
    this.state = state
    this.emit("state", state)
  }
}
