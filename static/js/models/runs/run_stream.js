// Assembles the deltas of one run; detects gaps and duplicates by their offset. Offsets count UTF-16
// units, like `String.length`.
export default class RunStream {
  #base = ""
  #text = ""

  // `targetId`: the message for which a swipe is written. `base`: its text if the run continues it;
  // `text`, the text so far, begins with it.
  constructor({ runId, membershipId, targetId = null, base = "", text = base, startedAt = 0 }) {
    this.runId = runId
    this.targetId = targetId
    this.membershipId = membershipId
    this.startedAt = startedAt
    this.#base = base
    this.#text = text
  }

  // Returns false if a delta is missing: the caller subscribes again. A part that is already known (a
  // delta that crossed the snapshot) is skipped.
  append({ offset, delta }) {
    if (offset > this.#text.length) return false
    const known = this.#text.length - offset
    if (known < delta.length) this.#text += delta.slice(known)
    return true
  }

  // Starts again from the continued text, followed by `text`.
  reset(text = "") {
    this.#text = this.#base + text
  }

  get text() {
    return this.#text
  }
}
