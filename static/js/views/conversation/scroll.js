// The scroll position of the timeline: at the end until the user scrolls up, else stable.
const NEAR_END_PX = 100
const NEAR_EDGE_PX = 700

export default class Scroll {
  #node
  #onMove
  #isWhole
  #observer
  #isPinned = true
  // The position after the last jump to the end.
  #jumpedTo = 0

  // `onMove({ nearTop, nearBottom, isPinned })` is called after every scroll. `isWhole()` returns
  // whether the last row is the newest; only then the end is pinned.
  constructor(node, { onMove, isWhole }) {
    this.#node = node
    this.#onMove = onMove
    this.#isWhole = isWhole
  }

  // Lifecycle

  mount(inner) {
    this.#node.addEventListener("scroll", this.#moved, { passive: true })
    // Growing content (a stream, a picture, the keyboard) keeps the end in view.
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

  // Scrolls to a node and unpins the end.
  to(node) {
    this.#isPinned = false
    node.scrollIntoView({ block: "center" })
  }

  // Runs `change` and keeps the visible messages at their position.
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

  // Returns the first visible message.
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
    // The event of our own jump may arrive after the content has grown again: the user has not
    // scrolled.
    if (this.#isPinned && below > NEAR_END_PX && scrollTop === this.#jumpedTo) return this.#jump()
    this.#isPinned = below <= NEAR_END_PX && this.#isWhole()
    this.#onMove({
      nearTop: scrollTop < NEAR_EDGE_PX,
      nearBottom: below < NEAR_EDGE_PX,
      isPinned: this.#isPinned,
    })
  }
}
