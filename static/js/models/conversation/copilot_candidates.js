// Suggestions for the next message of the user, filled in any order. Events that arrive before the id
// of the request is known are kept until then.
export default class CopilotCandidates {
  // Each is `{ text, error }`; both are null while it is being written.
  entries = []
  #generationId = null
  #early = []
  #ticket = 0

  get isEmpty() {
    return this.entries.length === 0
  }
  get isPending() {
    return this.entries.some(({ text, error }) => text === null && error === null)
  }

  // Starts a new request and drops the previous one. Returns a ticket for `started` and `failed`.
  start(count) {
    this.entries = Array.from({ length: count }, () => ({ text: null, error: null }))
    this.#generationId = null
    this.#early = []
    return ++this.#ticket
  }

  // The server has accepted the request.
  started(ticket, generationId) {
    if (ticket !== this.#ticket || this.isEmpty) return
    this.#generationId = generationId
    for (const event of this.#early.splice(0)) this.apply(event)
  }

  // The server has refused the request.
  failed(ticket) {
    if (ticket === this.#ticket) this.clear()
  }

  // Applies an event. Returns false if it does not belong to the current request.
  apply(event) {
    if (this.isEmpty) return false
    if (this.#generationId === null) {
      this.#early.push(event)
      return false
    }
    if (event.generation_id !== this.#generationId || !this.entries[event.index]) return false
    this.entries[event.index] = { text: event.text ?? null, error: event.error ?? null }
    return true
  }

  // Marks unfinished candidates as failed after a lost connection, because their events are not sent
  // again.
  failPending(error) {
    this.entries = this.entries.map((entry) =>
      entry.text === null && entry.error === null ? { text: null, error } : entry,
    )
  }

  clear() {
    this.entries = []
    this.#generationId = null
    this.#early = []
  }
}
