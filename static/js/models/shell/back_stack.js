// Lets the browser's Back button close the layers above the page (dialogs), the topmost first.
//
// Each layer has one history entry with the address of the page. Layers and history entries are
// synchronized after the current task, so that replacing a layer by another needs no navigation.
// Entries of closed layers are skipped, so that Back always has an effect.

// If a navigation does not arrive in time, the current entry counts as the page.
const STEP_WITHIN_MS = 1000

export default class BackStack {
  #history
  // The open layers, the topmost last.
  #open = []
  // The timer of a navigation that this class has started.
  #step = null
  #waiting = []
  #timer = null

  constructor(history) {
    this.#history = history
  }

  // Lifecycle

  start() {
    window.addEventListener("popstate", () => this.onPopState())
    this.#settleSoon()
  }

  // Actions

  // Adds a layer. Back calls `dismiss()`, which returns whether the layer closes. Returns the function
  // to call when the layer is closed.
  open(dismiss) {
    const layer = { dismiss }
    this.#open.push(layer)
    this.#settleSoon()
    return () => this.#release(layer)
  }

  // Handles a change of the history.
  onPopState() {
    if (this.#step !== null) return this.#arrive()
    for (const layer of this.#open.slice(this.#nEntries).reverse()) {
      if (!layer.dismiss()) break
      this.#release(layer)
    }
    this.#settleSoon()
  }

  // Calls `go(isLayerEntry)` when no navigation is pending. `isLayerEntry`: the current entry belongs
  // to a layer and can be replaced.
  whenSettled(go) {
    if (this.#step !== null) return this.#waiting.push(go)
    go(this.#nEntries > 0)
    this.#settleSoon()
  }

  // Private

  // The number of layer entries in the history up to the current one.
  get #nEntries() {
    return this.#history.state?.layer ?? 0
  }

  #release(layer) {
    this.#open = this.#open.filter((it) => it !== layer)
    this.#settleSoon()
  }

  #settleSoon() {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#settle()
    }, 0)
  }

  #settle() {
    if (this.#step !== null) return
    const [nEntries, wanted] = [this.#nEntries, this.#open.length]
    for (let layer = nEntries + 1; layer <= wanted; layer += 1) this.#history.pushState({ layer }, "")
    if (nEntries <= wanted) return
    this.#step = setTimeout(() => {
      this.#history.replaceState({}, "")
      this.#arrive()
    }, STEP_WITHIN_MS)
    this.#history.go(wanted - nEntries)
  }

  #arrive() {
    clearTimeout(this.#step)
    this.#step = null
    for (const go of this.#waiting.splice(0)) go(this.#nEntries > 0)
    this.#settleSoon()
  }
}
