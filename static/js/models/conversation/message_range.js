// A part of a timeline: messages in order of `seq` without gaps.
export default class MessageRange {
  #messages = []
  // Whether there are more messages before the first.
  mayHaveOlder = false

  get messages() {
    return this.#messages
  }
  get oldestSeq() {
    return this.#messages[0]?.seq ?? null
  }
  get newestSeq() {
    return this.#messages.at(-1)?.seq ?? null
  }

  byId(id) {
    return this.#messages.find((message) => message.id === id) ?? null
  }

  // Inserts a message at its position and replaces a message with the same id.
  insert(message) {
    let index = this.#messages.length
    while (index > 0 && this.#messages[index - 1].seq > message.seq) index -= 1
    if (this.#messages[index - 1]?.id === message.id) this.#messages[index - 1] = message
    else this.#messages.splice(index, 0, message)
  }

  // Replaces each message by `change(message)`.
  update(change) {
    this.#messages = this.#messages.map(change)
  }

  remove(id) {
    const index = this.#messages.findIndex((message) => message.id === id)
    if (index < 0) return false
    this.#messages.splice(index, 1)
    return true
  }

  // Adds the older messages of another range.
  prepend(other) {
    const { oldestSeq } = this
    const older = other.messages.filter(({ seq }) => oldestSeq === null || seq < oldestSeq)
    this.#messages = [...older, ...this.#messages]
    this.mayHaveOlder = other.mayHaveOlder
  }

  spans(seq) {
    return this.oldestSeq !== null && seq >= this.oldestSeq && seq <= this.newestSeq
  }

  isBefore(seq) {
    return this.newestSeq < seq
  }
}
