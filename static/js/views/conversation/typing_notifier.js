// Tells the other members at intervals that the user is typing, and when that ends.
const SEND_EVERY_MS = 3000
const STOPS_AFTER_MS = 5000

export default class TypingNotifier {
  #send
  #sentAt = 0
  #timer = null

  // `send(active)` tells the other members.
  constructor(send) {
    this.#send = send
  }

  // Called with each input; without further input, the user has stopped.
  update(active) {
    clearTimeout(this.#timer)
    if (!active) {
      if (this.#sentAt > 0) this.#send(false)
      this.#sentAt = 0
      return
    }
    this.#timer = setTimeout(() => this.update(false), STOPS_AFTER_MS)
    if (Date.now() - this.#sentAt < SEND_EVERY_MS) return
    this.#sentAt = Date.now()
    this.#send(true)
  }
}
