// Puts the deltas of one run together, however often they arrive.
// Offsets count UTF-16 units, as `String.length` does.
export default class RunStream {
  #text = ""

  // `targetId`: the message for which another text is written.
  constructor({ runId, membershipId, targetId = null, text = "", startedAt = 0 }) {
    this.runId = runId
    this.targetId = targetId
    this.membershipId = membershipId
    this.startedAt = startedAt
    this.#text = text
  }

  // Returns false when something is missing: the caller subscribes again.
  // What overlaps with the text already held (a delta that crossed the snapshot) is taken once.
  append({ offset, delta }) {
    if (offset > this.#text.length) return false
    const known = this.#text.length - offset
    if (known < delta.length) this.#text += delta.slice(known)
    return true
  }

  reset(text = "") {
    this.#text = text
  }

  get text() {
    return this.#text
  }
}
