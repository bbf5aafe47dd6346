// Texts that I might say, on their way: one place for each, filled in any order. What the socket
// brings before the server has said which ones are mine, is kept until then.
export default class CopilotCandidates {
  // `{ text, error }`, both null while it is being written.
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

  // Asks anew: what was there, goes. Answers a ticket for what comes of it.
  start(count) {
    this.entries = Array.from({ length: count }, () => ({ text: null, error: null }))
    this.#generationId = null
    this.#early = []
    return ++this.#ticket
  }

  // The server has begun to write.
  started(ticket, generationId) {
    if (ticket !== this.#ticket || this.isEmpty) return
    this.#generationId = generationId
    for (const event of this.#early.splice(0)) this.apply(event)
  }

  // The server has refused.
  failed(ticket) {
    if (ticket === this.#ticket) this.clear()
  }

  // Says whether the event was one of mine.
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

  // The line was lost for a while: what was told meanwhile does not come again.
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
