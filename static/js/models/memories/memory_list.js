// The loaded memories of a space, newest first, or those that a search has found, best first.
export default class MemoryList {
  #memories = []
  #cursor = null

  get memories() {
    return this.#memories
  }
  // The cursor of the next page; null after the last one.
  get cursor() {
    return this.#cursor
  }

  reset(page) {
    this.#memories = []
    this.append(page)
  }

  // Adds a page of older memories.
  append({ data, has_more: hasMore, cursor }) {
    const known = new Set(this.#memories.map((it) => it.id))
    this.#memories = [...this.#memories, ...data.filter((it) => !known.has(it.id))]
    this.#cursor = hasMore ? cursor : null
  }

  // Replaces a changed memory; how it was found is kept.
  put(memory) {
    this.#memories = this.#memories.map((it) => (it.id === memory.id ? { ...it, ...memory } : it))
  }

  // Returns the index at which the memory was, or -1.
  remove(id) {
    const index = this.#memories.findIndex((it) => it.id === id)
    this.#memories = this.#memories.filter((it) => it.id !== id)
    return index
  }
}
