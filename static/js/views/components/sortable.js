// A list whose rows can be dragged by a handle, with mouse, pen or touch. The rows only appear to move;
// the owner of the list applies the new order.
export default class Sortable {
  #list
  #handle
  #onDrop
  #drag = null

  // `handle` is the selector of the handle; `onDrop(row, index)` is called with the new index.
  constructor(list, { handle, onDrop }) {
    this.#list = list
    this.#handle = handle
    this.#onDrop = onDrop
  }

  // Lifecycle

  mount() {
    this.#list.addEventListener("pointerdown", this.#onDown)
  }

  unmount() {
    this.#list.removeEventListener("pointerdown", this.#onDown)
    this.#end()
  }

  // Private

  #onDown = (event) => {
    const handle = event.target.closest(this.#handle)
    if (!handle || event.button !== 0 || this.#drag) return
    event.preventDefault()
    const rows = [...this.#list.children]
    const row = rows.find((it) => it.contains(handle))
    const boxes = rows.map((it) => it.getBoundingClientRect())
    const from = rows.indexOf(row)
    this.#drag = { row, rows, boxes, from, to: from, startY: event.clientY, stop: new AbortController() }
    const { signal } = this.#drag.stop
    handle.setPointerCapture(event.pointerId)
    handle.addEventListener("pointermove", this.#onMove, { signal })
    handle.addEventListener("pointerup", this.#onUp, { signal })
    handle.addEventListener("pointercancel", () => this.#end(), { signal })
    document.addEventListener("keydown", this.#onKey, { signal, capture: true })
    row.dataset.dragged = ""
    this.#list.dataset.sorting = ""
  }

  #onMove = ({ clientY }) => {
    const { row, rows, boxes, from, startY } = this.#drag
    const by = clientY - startY
    const center = boxes[from].top + boxes[from].height / 2 + by
    const above = boxes.filter((box, index) => index !== from && box.top + box.height / 2 < center)
    this.#drag.to = above.length
    row.style.transform = `translateY(${by}px)`
    rows.forEach((it, index) => {
      if (it !== row) it.style.transform = `translateY(${this.#shift(index)}px)`
    })
  }

  // Shifts the rows between the old and the new index.
  #shift(index) {
    const { from, to, boxes } = this.#drag
    if (index > from && index <= to) return -boxes[from].height
    return index < from && index >= to ? boxes[from].height : 0
  }

  #onUp = () => {
    const { row, from, to } = this.#drag
    this.#end()
    if (to !== from) this.#onDrop(row, to)
  }

  #onKey = (event) => {
    if (event.key !== "Escape") return
    event.preventDefault()
    event.stopPropagation()
    this.#end()
  }

  #end() {
    if (!this.#drag) return
    const { rows, row, stop } = this.#drag
    stop.abort()
    for (const it of rows) it.style.transform = ""
    delete row.dataset.dragged
    delete this.#list.dataset.sorting
    this.#drag = null
  }
}
