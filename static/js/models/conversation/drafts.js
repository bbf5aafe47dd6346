// Unsent texts by conversation, kept over reloads and sign-outs.
export default class Drafts {
  #storage
  #userId

  constructor(storage, userId) {
    this.#storage = storage
    this.#userId = userId
  }

  read(conversationId) {
    try {
      return this.#storage.getItem(this.#key(conversationId)) ?? ""
    } catch {
      return ""
    }
  }

  write(conversationId, text) {
    try {
      if (text === "") this.#storage.removeItem(this.#key(conversationId))
      else this.#storage.setItem(this.#key(conversationId), text)
    } catch {
      // The text stays in the field; only a reload would lose it.
    }
  }

  clear(conversationId) {
    this.write(conversationId, "")
  }

  #key(conversationId) {
    return `troupe.draft.${this.#userId}.${conversationId}`
  }
}
