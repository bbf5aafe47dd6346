// A countdown. It is hidden from screen readers, which would announce every change.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"

const UPDATE_EVERY_MS = 250
// Shorter waits are not shown.
const MIN_WAIT_MS = 1500

export default class Countdown {
  #now
  #until = null
  #timer = null
  #node = el("span", { class: "queue__countdown", "aria-hidden": "true", hidden: true })

  // `now()` returns the time of the server.
  constructor(now) {
    this.#now = now
  }

  get node() {
    return this.#node
  }

  // Actions

  // `at` is a time as the server sends it, or null.
  show(at) {
    const until = at ? Date.parse(at) : null
    if (until === this.#until) return
    this.stop()
    if (until === null || until - this.#now() < MIN_WAIT_MS) return
    this.#until = until
    this.#timer = setInterval(() => this.#tick(), UPDATE_EVERY_MS)
    this.#tick()
  }

  stop() {
    clearInterval(this.#timer)
    this.#until = null
    this.#node.hidden = true
  }

  // Private

  #tick() {
    const n = Math.ceil((this.#until - this.#now()) / 1000)
    this.#node.hidden = n <= 0
    const text = t("queue.in_seconds", { n })
    if (this.#node.textContent !== text) this.#node.textContent = text
  }
}
