// A countdown to the start of something, or to the end of a turn. It is hidden from screen readers, which
// would announce every change.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { duration } from "../../base/time.js"

const UPDATE_EVERY_MS = 250
// Shorter waits are not shown.
const MIN_WAIT_MS = 1500
// Longer times are shown in minutes or hours.
const MAX_SECONDS = 120

export default class Countdown {
  #now
  #until = null
  #isEnd = false
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

  // `at` is a time as the server sends it, or null; with `isEnd` the time that is left until then is shown.
  show(at, { isEnd = false } = {}) {
    const until = at ? Date.parse(at) : null
    if (until === this.#until && isEnd === this.#isEnd) return
    this.stop()
    this.#isEnd = isEnd
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
    const text = this.#isEnd ? this.#left(n) : t("queue.in_seconds", { n })
    if (this.#node.textContent !== text) this.#node.textContent = text
  }

  #left(n) {
    if (n < MAX_SECONDS) return t("queue.seconds_left", { n })
    return t("queue.time_left", { time: duration(n * 1000) })
  }
}
