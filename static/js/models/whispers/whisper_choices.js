// For each conversation, to whom the next messages are whispered: ids of memberships, without the author.
// Kept like the draft of the conversation, until it is cleared.
export default class WhisperChoices {
  #storage
  #userId
  #chosen = new Map()

  constructor(storage, userId) {
    this.#storage = storage
    this.#userId = userId
  }

  // Returns the chosen members, or null: everyone.
  read(conversationId) {
    if (!this.#chosen.has(conversationId)) this.#chosen.set(conversationId, this.#stored(conversationId))
    return this.#chosen.get(conversationId)
  }

  // Null: everyone.
  write(conversationId, ids) {
    const chosen = ids?.length > 0 ? [...ids] : null
    this.#chosen.set(conversationId, chosen)
    try {
      if (chosen) this.#storage.setItem(this.#key(conversationId), JSON.stringify(chosen))
      else this.#storage.removeItem(this.#key(conversationId))
    } catch {
      // The choice stays on this page; only a reload would lose it.
    }
  }

  #stored(conversationId) {
    try {
      const ids = JSON.parse(this.#storage.getItem(this.#key(conversationId)) ?? "null")
      return Array.isArray(ids) && ids.length > 0 && ids.every(Number.isInteger) ? ids : null
    } catch {
      return null
    }
  }

  #key(conversationId) {
    return `troupe.whisper.${this.#userId}.${conversationId}`
  }
}
