// The pending speakers of a round while a user edits them; a member may occur several times. The round
// continues meanwhile and the draft follows it.
import { pendingSlots } from "./queue.js"

export default class RoundDraft {
  #base = []
  #nextKey = 0
  roundId = null
  // Each is `{ key, membershipId, reason }`; `reason` is null for added speakers, and `membershipId` for
  // a slot for which the director chooses.
  entries = []

  constructor(queue) {
    this.#load(queue)
  }

  get isOver() {
    return this.roundId === null
  }
  get isChanged() {
    const present = this.#base.map((slot) => slot.membership_id)
    return JSON.stringify(this.membershipIds) !== JSON.stringify(present)
  }
  get membershipIds() {
    return this.entries.map((entry) => entry.membershipId)
  }

  // Actions

  add(membershipId) {
    this.entries = [...this.entries, { key: this.#key(), membershipId, reason: null }]
  }

  remove(key) {
    this.entries = this.entries.filter((entry) => entry.key !== key)
  }

  // Moves an entry. Returns false if the index does not exist.
  move(key, index) {
    const from = this.entries.findIndex((entry) => entry.key === key)
    if (from < 0 || from === index || !this.entries[index]) return false
    this.entries = this.entries.toSpliced(from, 1).toSpliced(index, 0, this.entries[from])
    return true
  }

  // Applies the current queue. Speakers that have begun leave the list. Returns "changed" if the
  // pending speakers are different, and starts the draft again.
  follow(queue) {
    const rest = pendingSlots(queue)
    const begun = this.#base.length - rest.length
    const isSameRound = this.roundId === (queue.round?.id ?? null)
    if (isSameRound && begun >= 0 && same(this.#base.slice(begun), rest)) {
      const gone = new Set(this.#base.slice(0, begun).map((slot) => `slot-${slot.position}`))
      this.entries = this.entries.filter((entry) => !gone.has(entry.key))
      this.#base = rest
      return begun > 0 ? "begun" : null
    }
    const wasChanged = this.isChanged
    this.#load(queue)
    return wasChanged || !isSameRound ? "changed" : "begun"
  }

  // Private

  #load(queue) {
    this.roundId = queue.round?.id ?? null
    this.#base = pendingSlots(queue)
    this.entries = this.#base.map((slot) => ({
      key: `slot-${slot.position}`,
      membershipId: slot.membership_id,
      reason: slot.chosen_because,
    }))
  }

  #key() {
    this.#nextKey += 1
    return `new-${this.#nextKey}`
  }
}

function same(a, b) {
  return (
    a.length === b.length &&
    a.every((slot, at) => slot.position === b[at].position && slot.membership_id === b[at].membership_id)
  )
}
