// The loaded memories of a space, newest first, or those that a search has found, best first.
export default class MemoryList {
  #memories = []
  #cursor = null
  // The ids of deleted memories. A memory is restored with its messages.
  #deletedIds = new Set()
  // Memories up to this id may have been deleted by an event that does not name their ids.
  #forgottenUpTo = 0

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

  // Applies an event of the socket. Returns "changed", "stale" (the list must be read again), or null. A
  // filtered list does not know whether it has a new memory, and an event may be older than the deletion
  // of its memory.
  apply(event, { isFiltered }) {
    switch (event.type) {
      case "memory_updated":
        return this.#applyMemory(event.memory, isFiltered)
      case "memory_deleted":
        this.#deletedIds.add(event.memory_id)
        return this.remove(event.memory_id) === -1 ? null : "changed"
      case "memories_forgotten":
      case "conversation_deleted":
        this.#forgottenUpTo = Math.max(this.#forgottenUpTo, ...this.#memories.map((it) => it.id))
        return "stale"
      default:
        return event.reload ? "stale" : null
    }
  }

  #applyMemory(memory, isFiltered) {
    const known = this.#memories.find((it) => it.id === memory.id)
    if (known && known.version > memory.version) return null
    if (known) {
      this.put(memory)
      return "changed"
    }
    if (isFiltered) return "stale"
    const index = this.#memories.findIndex((it) => it.id < memory.id)
    // It belongs to a page that is not loaded.
    if (index === -1 && this.#cursor !== null) return null
    if (memory.id <= this.#forgottenUpTo || this.#deletedIds.has(memory.id)) return "stale"
    this.#memories = this.#memories.toSpliced(index === -1 ? this.#memories.length : index, 0, memory)
    return "changed"
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
