// The loaded messages of one conversation. The key of an entry does not change when a pending message
// is confirmed, so that a view can keep its DOM node.
//
// **Invariant:** the shown messages have no gaps. They are the newest range, which receives all live
// messages, or, after a jump, a separate range until it reaches the newest range and is merged with it.
import MessageRange from "./message_range.js"
import { requoted } from "./quote.js"
import { isSameAudience } from "../whispers/audience.js"

export default class Timeline {
  #newest = new MessageRange()
  // The range after a jump; null while the newest range is shown.
  #jumpRange = null
  #keys = new Map()
  // Changes of messages that are not loaded. A page that was requested before may be older than these.
  #updates = new Map()
  #generation = 0
  #isForPeople

  // `isForPeople(audience)` returns whether no character belongs to an audience.
  constructor(isForPeople = () => false) {
    this.#isForPeople = isForPeople
  }

  // Whether there are messages before the oldest shown one.
  get mayHaveOlder() {
    return this.#shown.mayHaveOlder
  }
  // Whether there are messages after the last shown one.
  get mayHaveNewer() {
    return this.#jumpRange !== null
  }
  get messages() {
    return this.#shown.messages
  }
  get oldestSeq() {
    return this.#shown.oldestSeq
  }
  // The range of `seq` between the shown messages and the newest range.
  get gap() {
    return this.#jumpRange && { after: this.#jumpRange.newestSeq ?? 0, before: this.#newest.oldestSeq }
  }
  // Changes whenever another range is shown.
  get generation() {
    return this.#generation
  }
  // The newest message, shown or not, that the schedule reads: neither out of character nor a whisper to
  // people.
  get tail() {
    return this.#newest.messages.findLast((message) => this.#isScheduled(message)) ?? null
  }
  // The seq of the newest message of any kind; 0 if there is none.
  get newestSeq() {
    return this.#newest.newestSeq ?? 0
  }

  // Whether no other message that the schedule reads follows for the same audience, or for everyone.
  isNewest(message) {
    const counts = (it) => !it.audience || isSameAudience(it.audience, message.audience)
    return this.#newest.messages.findLast((it) => this.#isScheduled(it) && counts(it))?.id === message.id
  }

  keyOf(message) {
    return this.#keys.get(message.id) ?? `m-${message.id}`
  }
  byId(id) {
    return this.#jumpRange?.byId(id) ?? this.#newest.byId(id)
  }

  // Replaces everything with the newest messages. `keyFor(message)` may return the key of an existing
  // entry.
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

  // Adds a page of newer messages; the last page is followed by the newest range.
  append(messages, hasMore) {
    this.#add(this.#jumpRange, messages)
    if (!hasMore) this.#join()
  }

  // Shows a page from any position; merges it with the newest range if they overlap.
  jump(messages) {
    const jumpRange = new MessageRange()
    jumpRange.mayHaveOlder = firstSeq(messages) > 1
    this.#add(jumpRange, messages)
    this.#show(jumpRange.messages.length > 0 ? jumpRange : null)
    if (this.#jumpRange && !this.#jumpRange.isBefore(this.#newest.oldestSeq)) this.#join()
  }

  // Shows the newest range.
  showNewest() {
    this.#show(null)
  }

  // Applies a created, changed or hidden message. `key` is the key of its pending entry or its stream.
  // Returns whether the loaded messages have changed.
  put(message, key = null) {
    this.#requote(message)
    if (message.visibility === "hidden") return this.#hide(message)
    const known = this.byId(message.id)
    if (known && known.rev > message.rev) return false
    const range = this.#rangeFor(message)
    if (!range) return this.#rememberUpdate(message)
    if (!known && key) this.#keys.set(message.id, key)
    range.insert(message)
    return true
  }

  // Applies the changed reactions of a message.
  react({ message_id: id, reactions, rev }) {
    const change = (message) => (message.id === id ? { ...message, reactions, rev } : message)
    for (const range of this.#ranges) range.update(change)
    const update = this.#updates.get(id)
    if (update) this.#updates.set(id, change(update))
  }

  // Private

  #isScheduled({ is_ooc: isOoc, audience }) {
    return !isOoc && !(audience && this.#isForPeople(audience))
  }

  get #ranges() {
    return [this.#newest, this.#jumpRange].filter(Boolean)
  }

  // Updates the replies to a message.
  #requote(target) {
    const known = this.byId(target.id)
    if (known && known.rev > target.rev && target.visibility !== "hidden") return
    for (const range of this.#ranges) range.update((message) => requoted(message, target))
  }

  get #shown() {
    return this.#jumpRange ?? this.#newest
  }

  #show(jumpRange) {
    this.#jumpRange = jumpRange
    this.#generation += 1
  }

  // Returns null if the position is not loaded.
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
    // A page that is being loaded may contain the message.
    this.#rememberUpdate(message)
    return isHere
  }

  #rememberUpdate(message) {
    const known = this.#updates.get(message.id)
    if (!known || known.rev <= message.rev) this.#updates.set(message.id, message)
    return false
  }

  // Inserts a page; updates that arrived since its request are newer.
  #add(range, messages) {
    for (const message of messages) {
      const update = this.#updates.get(message.id)
      const current = update?.rev >= message.rev ? update : message
      if (current.visibility !== "hidden") range.insert(current)
    }
    this.#addUpdates(range)
  }

  // Inserts messages that were restored while the page was loading and are missing in it.
  #addUpdates(range) {
    for (const [id, message] of this.#updates) {
      if (!range.spans(message.seq)) continue
      this.#updates.delete(id)
      const isOld = range.byId(id)?.rev > message.rev
      if (message.visibility !== "hidden" && !isOld) range.insert(message)
    }
  }

  // Merges the jump range into the newest range.
  #join() {
    this.#newest.prepend(this.#jumpRange)
    this.#jumpRange = null
  }
}

function firstSeq(messages) {
  return messages[0]?.seq ?? 1
}
