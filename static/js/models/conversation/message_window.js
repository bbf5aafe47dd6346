// The part of the loaded messages that is in the document: at most MAX messages. It follows the end
// until the user scrolls up.
const MAX = 240
const STEP = 60

export default class MessageWindow {
  start = 0
  end = 0
  #n = 0

  get isAtEnd() {
    return this.end >= this.#n
  }

  // Shows the newest of `n` messages.
  reset(n) {
    this.#n = n
    this.toEnd()
  }

  toEnd() {
    this.end = this.#n
    this.start = Math.max(0, this.end - MAX)
  }

  // Shows the message at this index and those around it.
  around(index) {
    this.end = Math.min(this.#n, index + STEP)
    this.start = Math.max(0, this.end - MAX)
  }

  // Updates the number of messages after a change at the end.
  resize(n) {
    const wasAtEnd = this.isAtEnd
    this.#n = n
    if (wasAtEnd) this.end = n
    else this.end = Math.min(this.end, n)
    if (wasAtEnd && this.end - this.start > MAX + STEP) this.start = this.end - MAX
    this.start = Math.min(this.start, Math.max(0, this.end - 1))
  }

  // `added` older messages were inserted before the first.
  prepended(added) {
    this.#n += added
    this.start += added
    this.end += added
  }

  // Messages were added after the last.
  appended(n) {
    this.#n = n
  }

  // Returns whether the window has moved.
  showOlder() {
    if (this.start === 0) return false
    this.start = Math.max(0, this.start - STEP)
    this.end = Math.min(this.end, this.start + MAX)
    return true
  }

  showNewer() {
    if (this.isAtEnd) return false
    this.end = Math.min(this.#n, this.end + STEP)
    this.start = Math.max(this.start, this.end - MAX)
    return true
  }
}
