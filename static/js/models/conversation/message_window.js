// Which of the messages held in memory are in the document: at most MAX of them, however long the
// conversation is. It sticks to the end until someone scrolls up.
const MAX = 240
const STEP = 60

export default class MessageWindow {
  start = 0
  end = 0
  #n = 0

  get isAtEnd() {
    return this.end >= this.#n
  }

  // Everything is new: show the newest.
  reset(n) {
    this.#n = n
    this.toEnd()
  }

  toEnd() {
    this.end = this.#n
    this.start = Math.max(0, this.end - MAX)
  }

  // Shows the message at this index, with others around it.
  around(index) {
    this.end = Math.min(this.#n, index + STEP)
    this.start = Math.max(0, this.end - MAX)
  }

  // Messages came or went at the end.
  resize(n) {
    const wasAtEnd = this.isAtEnd
    this.#n = n
    if (wasAtEnd) this.end = n
    else this.end = Math.min(this.end, n)
    if (wasAtEnd && this.end - this.start > MAX + STEP) this.start = this.end - MAX
    this.start = Math.min(this.start, Math.max(0, this.end - 1))
  }

  // `added` older messages were put before the first.
  prepended(added) {
    this.#n += added
    this.start += added
    this.end += added
  }

  // There are more after the last.
  appended(n) {
    this.#n = n
  }

  // Returns whether there was something to show.
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
