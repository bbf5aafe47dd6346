// The browser's Back closes what stands open above the page, the topmost first, and stays on the page.
//
// Each layer has one entry in the history, with the address of the page beneath. What is open and what
// the history holds are brought together behind the present task, so that a layer which makes room for
// another costs no step. An entry whose layer is gone is stepped over: none ever makes Back do nothing.

// A step that never arrives must not hold up the page for ever: where we are is then the page.
const STEP_WITHIN_MS = 1000

export default class BackStack {
  #history
  // From the lowest to the topmost.
  #open = []
  // A step of our own through the history is under way.
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

  // `dismiss()` is what Back does: it answers whether the layer closes. Answers what to call when it
  // is closed, however it came to that.
  open(dismiss) {
    const layer = { dismiss }
    this.#open.push(layer)
    this.#settleSoon()
    return () => this.#release(layer)
  }

  // The history has moved.
  onPopState() {
    if (this.#step !== null) return this.#arrive()
    for (const layer of this.#open.slice(this.#nEntries).reverse()) {
      if (!layer.dismiss()) break
      this.#release(layer)
    }
    this.#settleSoon()
  }

  // Calls `go(isLayerEntry)` when the history may be written. `isLayerEntry`: where we are is the entry of a layer,
  // which leads nowhere any more, and the next page takes its place.
  whenSettled(go) {
    if (this.#step !== null) return this.#waiting.push(go)
    go(this.#nEntries > 0)
    this.#settleSoon()
  }

  // Private

  // How many entries of layers there are from the page up to where we are.
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
