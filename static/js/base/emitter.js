// Calls registered listeners in the order of their registration.
export default class Emitter {
  #listeners = new Map()

  // Returns the function that removes the listener.
  on(name, listener) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, new Set())
    this.#listeners.get(name).add(listener)
    return () => this.#listeners.get(name)?.delete(listener)
  }

  // Registers one listener for several events; it is called with the name of the event and its detail.
  // Returns the function that removes it.
  onAny(names, listener) {
    const removers = names.map((name) => this.on(name, (detail) => listener(name, detail)))
    return () => removers.forEach((remove) => remove())
  }

  emit(name, detail) {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) listener(detail)
  }
}
