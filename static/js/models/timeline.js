// The messages of one conversation that this tab holds, in order of `seq`, without gaps in between.
// Every entry has a key that stays the same from the pending state to the final one, so that a view
// can keep one DOM node for it.
export default class Timeline {
  #messages = []
  #keys = new Map()
  #mayHaveOlder = false

  // What stands before the oldest message is asked from the server page by page.
  get mayHaveOlder() {
    return this.#mayHaveOlder
  }
  get messages() {
    return this.#messages
  }
  get oldestSeq() {
    return this.#messages[0]?.seq ?? null
  }
  get tail() {
    return this.#messages.at(-1) ?? null
  }

  keyOf(message) {
    return this.#keys.get(message.id) ?? `m-${message.id}`
  }
  byId(id) {
    return this.#messages.find((message) => message.id === id) ?? null
  }

  // Forgets everything and begins with the newest messages. `keyFor(message)` may know a key that
  // an entry on the screen has already.
  reset(messages, keyFor = () => null) {
    this.#messages = []
    this.#mayHaveOlder = firstSeq(messages) > 1
    for (const message of messages) {
      const key = keyFor(message)
      if (key) this.#keys.set(message.id, key)
      this.#place(message)
    }
  }

  // Adds a page of older messages.
  prepend(messages, hasMore) {
    this.#mayHaveOlder = hasMore
    for (const message of messages) this.#place(message)
  }

  // Takes a created, changed or hidden message. `key` keeps the node of its pending entry or of its stream.
  // Returns whether anything is different now.
  put(message, key = null) {
    if (message.visibility === "hidden") return this.remove(message.id)
    const known = this.byId(message.id)
    if (known && known.rev > message.rev) return false
    if (!known && this.#isBeforeTheWindow(message)) return false
    if (!known && key) this.#keys.set(message.id, key)
    this.#place(message)
    return true
  }

  remove(id) {
    const index = this.#messages.findIndex((message) => message.id === id)
    if (index < 0) return false
    this.#messages.splice(index, 1)
    return true
  }

  #isBeforeTheWindow(message) {
    return this.#mayHaveOlder && this.oldestSeq !== null && message.seq < this.oldestSeq
  }

  #place(message) {
    let index = this.#messages.length
    while (index > 0 && this.#messages[index - 1].seq > message.seq) index -= 1
    if (this.#messages[index - 1]?.id === message.id) this.#messages[index - 1] = message
    else this.#messages.splice(index, 0, message)
  }
}

function firstSeq(messages) {
  return messages[0]?.seq ?? 1
}
