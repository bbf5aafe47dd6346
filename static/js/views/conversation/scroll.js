// Where the timeline stands: at its end as long as nobody scrolled up, else in a stable place.
const NEAR_END_PX = 100
const NEAR_EDGE_PX = 700

export default class Scroll {
  #node
  #onMove
  #isWhole
  #observer
  #isPinned = true
  // Where the last jump to the end came to rest.
  #jumpedTo = 0

  // `onMove({ nearTop, nearBottom, isPinned })` is told after every scroll. `isWhole()` says whether
  // what stands last is the newest: nothing else is the end.
  constructor(node, { onMove, isWhole }) {
    this.#node = node
    this.#onMove = onMove
    this.#isWhole = isWhole
  }

  // Lifecycle

  mount(inner) {
    this.#node.addEventListener("scroll", this.#moved, { passive: true })
    // What grows while one reads the end (a stream, a picture, the keyboard) keeps the end in view.
    this.#observer = new ResizeObserver(() => {
      if (this.#isPinned) this.#jump()
    })
    this.#observer.observe(inner)
    this.#observer.observe(this.#node)
  }

  unmount() {
    this.#observer.disconnect()
    this.#node.removeEventListener("scroll", this.#moved)
  }

  // Actions

  get isPinned() {
    return this.#isPinned
  }

  toEnd() {
    this.#isPinned = true
    this.#jump()
  }

  // Brings something into view, and lets go of the end.
  to(node) {
    this.#isPinned = false
    node.scrollIntoView({ block: "center" })
  }

  // Runs `change`; what one reads stays where it is, to the pixel.
  keep(change) {
    if (this.#isPinned) {
      change()
      return this.#jump()
    }
    const anchor = this.#anchor()
    const before = anchor?.getBoundingClientRect().top
    change()
    if (anchor?.isConnected) this.#node.scrollTop += anchor.getBoundingClientRect().top - before
  }

  // Private

  #jump() {
    this.#node.scrollTop = this.#node.scrollHeight
    this.#jumpedTo = this.#node.scrollTop
  }

  // The first message in view.
  #anchor() {
    const { top } = this.#node.getBoundingClientRect()
    for (const row of this.#node.querySelectorAll(".message")) {
      if (row.getBoundingClientRect().bottom > top) return row
    }
    return null
  }

  #moved = () => {
    const { scrollTop, scrollHeight, clientHeight } = this.#node
    const below = scrollHeight - clientHeight - scrollTop
    // Our own jump is told late, when the page may have grown again: the reader has not moved.
    if (this.#isPinned && below > NEAR_END_PX && scrollTop === this.#jumpedTo) return this.#jump()
    this.#isPinned = below <= NEAR_END_PX && this.#isWhole()
    this.#onMove({
      nearTop: scrollTop < NEAR_EDGE_PX,
      nearBottom: below < NEAR_EDGE_PX,
      isPinned: this.#isPinned,
    })
  }
}
