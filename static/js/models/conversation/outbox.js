// Messages of this tab that the server has not confirmed: shown at once, kept over a reload, and sent
// again under the same client id, so that a retry does not create a second message. After a reload a
// pending message counts as failed, because its state is unknown.
export default class Outbox {
  #entries
  #storage
  #storageKey

  // `name` identifies the user and the conversation.
  constructor(storage, name) {
    this.#storage = storage
    this.#storageKey = `troupe.outbox.${name}`
    this.#entries = this.#read()
  }

  get entries() {
    return this.#entries
  }

  // `persona` is the persona of the message: null for none, undefined if the server chooses it. `fields`
  // are further fields of the post: `is_ooc` and `mentions`. `replyTo` is the quotation of the message that
  // it answers, or null; `attachments` are its uploaded pictures.
  add(clientId, content, createdAt, { persona = undefined, fields = {}, replyTo = null, attachments = [] } = {}) {
    const shown = { content, createdAt, persona, fields, replyTo, attachments }
    const entry = { clientId, ...shown, state: "pending", error: null }
    this.#entries = [...this.#entries, entry]
    this.#write()
    return entry
  }

  has(clientId) {
    return this.#entries.some((entry) => entry.clientId === clientId)
  }

  markPending(clientId) {
    return this.#change(clientId, { state: "pending", error: null })
  }

  // Sends a message again without the quotation that the server has refused.
  dropReply(clientId) {
    return this.#change(clientId, { replyTo: null, error: null })
  }

  markFailed(clientId, error) {
    return this.#change(clientId, { state: "failed", error })
  }

  // Removes a confirmed or discarded message. Returns whether it was in the outbox.
  remove(clientId) {
    const before = this.#entries.length
    this.#entries = this.#entries.filter((entry) => entry.clientId !== clientId)
    if (this.#entries.length !== before) this.#write()
    return this.#entries.length !== before
  }

  #change(clientId, fields) {
    let changed = null
    this.#entries = this.#entries.map((entry) => {
      if (entry.clientId !== clientId) return entry
      changed = { ...entry, ...fields }
      return changed
    })
    if (changed) this.#write()
    return changed
  }

  #read() {
    try {
      const entries = JSON.parse(this.#storage.getItem(this.#storageKey) ?? "[]")
      return entries.map((entry) => ({ ...entry, state: "failed", error: entry.error ?? "interrupted" }))
    } catch {
      return []
    }
  }

  #write() {
    try {
      if (this.#entries.length === 0) this.#storage.removeItem(this.#storageKey)
      else this.#storage.setItem(this.#storageKey, JSON.stringify(this.#entries))
    } catch {
      // Without storage the message is lost on a reload only.
    }
  }
}
