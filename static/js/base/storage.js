// Returns the browser's storage, or a storage in memory if the browser denies access.
export function storage(name) {
  try {
    const found = globalThis[name]
    found.getItem("troupe")
    return found
  } catch {
    return new MemoryStorage()
  }
}

class MemoryStorage {
  #items = new Map()
  getItem(key) {
    return this.#items.get(key) ?? null
  }
  setItem(key, value) {
    this.#items.set(key, value)
  }
  removeItem(key) {
    this.#items.delete(key)
  }
}
