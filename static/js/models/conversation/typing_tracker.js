// The people who are typing. An entry ends by an event or, if that event is lost, after a timeout; the
// state is repeated every few seconds.
const EXPIRES_AFTER_MS = 5500

export default class TypingTracker {
  #until = new Map()
  #clock

  constructor(clock = () => Date.now()) {
    this.#clock = clock
  }

  // Returns whether the list has changed.
  set(membershipId, active) {
    const before = this.active.length
    const had = this.#until.delete(membershipId)
    if (active) this.#until.set(membershipId, this.#clock() + EXPIRES_AFTER_MS)
    return had !== active || before !== this.active.length
  }

  clear() {
    this.#until.clear()
  }

  // In the order in which they began to type.
  get active() {
    const now = this.#clock()
    for (const [id, until] of this.#until) if (until <= now) this.#until.delete(id)
    return [...this.#until.keys()]
  }
}
