// Loads older and newer messages page by page, with one request at a time and never beyond the first or
// the last message.
export default class Paginator {
  #timeline
  #read
  #loading = null

  // `read({ before, after })` takes values of `seq` and returns `{ data, has_more }`.
  constructor(timeline, read) {
    this.#timeline = timeline
    this.#read = read
  }

  get loading() {
    return this.#loading !== null
  }

  // Both resolve to the number of added messages.
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
    // Drops the page if the timeline was reset or has jumped meanwhile.
    if (this.#timeline.generation !== generation) return 0
    const n = this.#timeline.messages.length
    addPage(page)
    return this.#timeline.messages.length - n
  }
}
