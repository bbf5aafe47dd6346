// Asks for the messages beside those that are shown, one page at a time: never two requests at once,
// never past the beginning or the end.
export default class Paginator {
  #timeline
  #read
  #loading = null

  // `read({ before, after })`, places as `seq`, answers `{ data, has_more }`.
  constructor(timeline, read) {
    this.#timeline = timeline
    this.#read = read
  }

  get loading() {
    return this.#loading !== null
  }

  // Both resolve to the number of messages that came.
  loadOlder() {
    const timeline = this.#timeline
    return this.#once(timeline.mayHaveOlder, { before: timeline.oldestSeq }, (page) =>
      timeline.prepend(page.data, page.has_more),
    )
  }

  loadNewer() {
    const timeline = this.#timeline
    return this.#once(timeline.mayHaveNewer, timeline.gap, (page) => timeline.append(page.data, page.has_more))
  }

  // Private

  #once(isMore, cursor, addPage) {
    if (this.#loading) return this.#loading
    if (!isMore) return Promise.resolve(0)
    this.#loading = this.#load(cursor, addPage).finally(() => {
      this.#loading = null
    })
    return this.#loading
  }

  async #load(cursor, addPage) {
    const { generation } = this.#timeline
    const page = await this.#read(cursor)
    // A reset or a jump in the meantime made this page useless.
    if (this.#timeline.generation !== generation) return 0
    const n = this.#timeline.messages.length
    addPage(page)
    return this.#timeline.messages.length - n
  }
}
