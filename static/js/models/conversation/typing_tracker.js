// Which people are typing. An entry ends by word of the server or, when that word is lost, by itself:
// whoever goes on typing is heard of every few seconds.
const EXPIRES_AFTER_MS = 5500

export default class TypingTracker {
  #until = new Map()
  #clock

  constructor(clock = () => Date.now()) {
    this.#clock = clock
  }

  // Returns whether the list is different now.
  set(membershipId, active) {
    const before = this.active.length
    const had = this.#until.delete(membershipId)
    if (active) this.#until.set(membershipId, this.#clock() + EXPIRES_AFTER_MS)
    return had !== active || before !== this.active.length
  }

  clear() {
    this.#until.clear()
  }

  // In the order in which they began.
  get active() {
    const now = this.#clock()
    for (const [id, until] of this.#until) if (until <= now) this.#until.delete(id)
    return [...this.#until.keys()]
  }
}
