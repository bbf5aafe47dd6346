// The unsaved text of a message that is being edited, kept over reloads; one for each conversation.
export default class EditDrafts {
  #storage
  #userId

  constructor(storage, userId) {
    this.#storage = storage
    this.#userId = userId
  }

  // Returns `{ messageId, version, base, text }`, or null. `version` and `base` are the version that was
  // edited and its text.
  read(conversationId) {
    try {
      const draft = JSON.parse(this.#storage.getItem(this.#key(conversationId)) ?? "null")
      return isDraft(draft) ? draft : null
    } catch {
      return null
    }
  }

  write(conversationId, { messageId, version, base, text }) {
    try {
      this.#storage.setItem(this.#key(conversationId), JSON.stringify({ messageId, version, base, text }))
    } catch {
      // The text stays in the field; only a reload would lose it.
    }
  }

  // Forgets the draft of this message.
  clear(conversationId, messageId) {
    if (this.read(conversationId)?.messageId !== messageId) return
    try {
      this.#storage.removeItem(this.#key(conversationId))
    } catch {
      // Without a storage there is no draft.
    }
  }

  #key(conversationId) {
    return `troupe.edit.${this.#userId}.${conversationId}`
  }
}

function isDraft(it) {
  const isText = [it?.text, it?.base].every((text) => typeof text === "string")
  return isText && Number.isInteger(it.messageId) && Number.isInteger(it.version)
}
