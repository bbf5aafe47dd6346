// Asks for older messages one page at a time: never two requests at once, never past the beginning.
export default class Paginator {
  #timeline
  #fetchBefore
  #loading = null

  // `fetchBefore(seq, limit)` answers `{ data, has_more }`.
  constructor(timeline, fetchBefore) {
    this.#timeline = timeline
    this.#fetchBefore = fetchBefore
  }

  get loading() {
    return this.#loading !== null
  }

  // Resolves to the number of messages that came; `limit` asks for more of them than usual.
  loadOlder(limit) {
    if (this.#loading) return this.#loading
    if (!this.#timeline.mayHaveOlder) return Promise.resolve(0)
    this.#loading = this.#load(limit).finally(() => {
      this.#loading = null
    })
    return this.#loading
  }

  async #load(limit) {
    const before = this.#timeline.oldestSeq
    const page = await this.#fetchBefore(before, limit)
    // A reset in the meantime made this page useless.
    if (this.#timeline.oldestSeq !== before) return 0
    this.#timeline.prepend(page.data, page.has_more)
    return page.data.length
  }
}
