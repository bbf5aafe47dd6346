// The messages of one conversation that this tab holds. Every entry has a key that stays the same from
// the pending state to the final one, so that a view can keep one DOM node for it.
//
// **Invariant:** what is shown has no gaps. It is the newest stretch, to which live messages are added
// always; or, after a jump far back, a stretch of its own, until it has grown to the newest and is one with it.
import Stretch from "./message_range.js"

export default class Timeline {
  #newest = new Stretch()
  // Where one has jumped to; null while the newest is shown.
  #past = null
  #keys = new Map()
  // What was told of messages that are not here. A page that was asked for before may be older than this.
  #told = new Map()
  #turn = 0

  // What stands before the oldest message is asked from the server page by page.
  get mayHaveOlder() {
    return this.#shown.mayHaveOlder
  }
  // What stands after the last one that is shown, likewise.
  get mayHaveNewer() {
    return this.#past !== null
  }
  get messages() {
    return this.#shown.messages
  }
  get oldestSeq() {
    return this.#shown.oldestSeq
  }
  // Between which places there may be more: what is shown ends, and the newest begin.
  get gap() {
    return this.#past && { after: this.#past.newestSeq ?? 0, before: this.#newest.oldestSeq }
  }
  // Another number: another stretch is shown than before.
  get turn() {
    return this.#turn
  }
  // The newest of all, shown or not.
  get tail() {
    return this.#newest.messages.at(-1) ?? null
  }

  keyOf(message) {
    return this.#keys.get(message.id) ?? `m-${message.id}`
  }
  byId(id) {
    return this.#past?.byId(id) ?? this.#newest.byId(id)
  }

  // Forgets everything and begins with the newest messages. `keyFor(message)` may know a key that
  // an entry on the screen has already.
  reset(messages, keyFor = () => null) {
    this.#newest = new Stretch()
    this.#show(null)
    this.#told.clear()
    this.#newest.mayHaveOlder = firstSeq(messages) > 1
    for (const message of messages) {
      const key = keyFor(message)
      if (key) this.#keys.set(message.id, key)
      this.#newest.place(message)
    }
  }

  // Adds a page of older messages.
  prepend(messages, hasMore) {
    this.#shown.mayHaveOlder = hasMore
    this.#add(this.#shown, messages)
  }

  // Adds a page of what follows what is shown; without more of it the newest follow.
  append(messages, hasMore) {
    this.#add(this.#past, messages)
    if (!hasMore) this.#join()
  }

  // Shows a page of anywhere. Where it touches the newest it is part of them.
  jump(messages) {
    const past = new Stretch()
    past.mayHaveOlder = firstSeq(messages) > 1
    this.#add(past, messages)
    this.#show(past.messages.length > 0 ? past : null)
    if (this.#past && !this.#past.isBefore(this.#newest.oldestSeq)) this.#join()
  }

  // Shows the newest.
  leap() {
    this.#show(null)
  }

  // Takes a created, changed or hidden message. `key` keeps the node of its pending entry or of its stream.
  // Returns whether anything is different now.
  put(message, key = null) {
    if (message.visibility === "hidden") return this.#hide(message)
    const known = this.byId(message.id)
    if (known && known.rev > message.rev) return false
    const place = this.#stretchFor(message)
    if (!place) return this.#note(message)
    if (!known && key) this.#keys.set(message.id, key)
    place.place(message)
    return true
  }

  // Private

  get #shown() {
    return this.#past ?? this.#newest
  }

  #show(past) {
    this.#past = past
    this.#turn += 1
  }

  // Null: it stands where nothing is loaded.
  #stretchFor({ seq }) {
    const { oldestSeq, mayHaveOlder } = this.#newest
    if (oldestSeq === null || seq >= oldestSeq || !mayHaveOlder) return this.#newest
    const past = this.#past
    if (!past || seq > past.newestSeq) return null
    return seq >= past.oldestSeq || !past.mayHaveOlder ? past : null
  }

  #hide(message) {
    const isFromPast = this.#past?.remove(message.id) ?? false
    const isHere = this.#newest.remove(message.id) || isFromPast
    // It may be in a page that is under way.
    this.#note(message)
    return isHere
  }

  #note(message) {
    const known = this.#told.get(message.id)
    if (!known || known.rev <= message.rev) this.#told.set(message.id, message)
    return false
  }

  // A page was read before it came: what was told since is newer.
  #add(stretch, messages) {
    for (const message of messages) {
      const told = this.#told.get(message.id)
      const current = told?.rev >= message.rev ? told : message
      if (current.visibility !== "hidden") stretch.place(current)
    }
    this.#addTold(stretch)
  }

  // What was brought back while the page was under way is not in it.
  #addTold(stretch) {
    for (const [id, message] of this.#told) {
      if (!stretch.spans(message.seq)) continue
      this.#told.delete(id)
      const isOld = stretch.byId(id)?.rev > message.rev
      if (message.visibility !== "hidden" && !isOld) stretch.place(message)
    }
  }

  // The past has come to where the newest begin.
  #join() {
    this.#newest.prepend(this.#past)
    this.#past = null
  }
}

function firstSeq(messages) {
  return messages[0]?.seq ?? 1
}
