// The messages of one conversation that this tab holds. Every entry has a key that stays the same from
// the pending state to the final one, so that a view can keep one DOM node for it.
//
// **Invariant:** what is shown has no gaps. It is the newest range, to which live messages are added
// always; or, after a jump far back, a range of its own, until it has grown to the newest and is one with it.
import MessageRange from "./message_range.js"

export default class Timeline {
  #newest = new MessageRange()
  // Where one has jumped to; null while the newest is shown.
  #jumpRange = null
  #keys = new Map()
  // What was update of messages that are not here. A page that was asked for before may be older than this.
  #updates = new Map()
  #generation = 0

  // What stands before the oldest message is asked from the server page by page.
  get mayHaveOlder() {
    return this.#shown.mayHaveOlder
  }
  // What stands after the last one that is shown, likewise.
  get mayHaveNewer() {
    return this.#jumpRange !== null
  }
  get messages() {
    return this.#shown.messages
  }
  get oldestSeq() {
    return this.#shown.oldestSeq
  }
  // Between which places there may be more: what is shown ends, and the newest begin.
  get gap() {
    return this.#jumpRange && { after: this.#jumpRange.newestSeq ?? 0, before: this.#newest.oldestSeq }
  }
  // Another number: another range is shown than before.
  get generation() {
    return this.#generation
  }
  // The newest of all, shown or not.
  get tail() {
    return this.#newest.messages.at(-1) ?? null
  }

  keyOf(message) {
    return this.#keys.get(message.id) ?? `m-${message.id}`
  }
  byId(id) {
    return this.#jumpRange?.byId(id) ?? this.#newest.byId(id)
  }

  // Forgets everything and begins with the newest messages. `keyFor(message)` may know a key that
  // an entry on the screen has already.
  reset(messages, keyFor = () => null) {
    this.#newest = new MessageRange()
    this.#show(null)
    this.#updates.clear()
    this.#newest.mayHaveOlder = firstSeq(messages) > 1
    for (const message of messages) {
      const key = keyFor(message)
      if (key) this.#keys.set(message.id, key)
      this.#newest.insert(message)
    }
  }

  // Adds a page of older messages.
  prepend(messages, hasMore) {
    this.#shown.mayHaveOlder = hasMore
    this.#add(this.#shown, messages)
  }

  // Adds a page of what follows what is shown; without more of it the newest follow.
  append(messages, hasMore) {
    this.#add(this.#jumpRange, messages)
    if (!hasMore) this.#join()
  }

  // Shows a page of anywhere. Where it touches the newest it is part of them.
  jump(messages) {
    const jumpRange = new MessageRange()
    jumpRange.mayHaveOlder = firstSeq(messages) > 1
    this.#add(jumpRange, messages)
    this.#show(jumpRange.messages.length > 0 ? jumpRange : null)
    if (this.#jumpRange && !this.#jumpRange.isBefore(this.#newest.oldestSeq)) this.#join()
  }

  // Shows the newest.
  showNewest() {
    this.#show(null)
  }

  // Takes a created, changed or hidden message. `key` keeps the node of its pending entry or of its stream.
  // Returns whether anything is different now.
  put(message, key = null) {
    if (message.visibility === "hidden") return this.#hide(message)
    const known = this.byId(message.id)
    if (known && known.rev > message.rev) return false
    const range = this.#rangeFor(message)
    if (!range) return this.#rememberUpdate(message)
    if (!known && key) this.#keys.set(message.id, key)
    range.insert(message)
    return true
  }

  // Private

  get #shown() {
    return this.#jumpRange ?? this.#newest
  }

  #show(jumpRange) {
    this.#jumpRange = jumpRange
    this.#generation += 1
  }

  // Null: it stands where nothing is loaded.
  #rangeFor({ seq }) {
    const { oldestSeq, mayHaveOlder } = this.#newest
    if (oldestSeq === null || seq >= oldestSeq || !mayHaveOlder) return this.#newest
    const jumpRange = this.#jumpRange
    if (!jumpRange || seq > jumpRange.newestSeq) return null
    return seq >= jumpRange.oldestSeq || !jumpRange.mayHaveOlder ? jumpRange : null
  }

  #hide(message) {
    const isFromPast = this.#jumpRange?.remove(message.id) ?? false
    const isHere = this.#newest.remove(message.id) || isFromPast
    // It may be in a page that is under way.
    this.#rememberUpdate(message)
    return isHere
  }

  #rememberUpdate(message) {
    const known = this.#updates.get(message.id)
    if (!known || known.rev <= message.rev) this.#updates.set(message.id, message)
    return false
  }

  // A page was read before it came: what was update since is newer.
  #add(range, messages) {
    for (const message of messages) {
      const update = this.#updates.get(message.id)
      const current = update?.rev >= message.rev ? update : message
      if (current.visibility !== "hidden") range.insert(current)
    }
    this.#addUpdates(range)
  }

  // What was brought back while the page was under way is not in it.
  #addUpdates(range) {
    for (const [id, message] of this.#updates) {
      if (!range.spans(message.seq)) continue
      this.#updates.delete(id)
      const isOld = range.byId(id)?.rev > message.rev
      if (message.visibility !== "hidden" && !isOld) range.insert(message)
    }
  }

  // The jumpRange has come to where the newest begin.
  #join() {
    this.#newest.prepend(this.#jumpRange)
    this.#jumpRange = null
  }
}

function firstSeq(messages) {
  return messages[0]?.seq ?? 1
}
