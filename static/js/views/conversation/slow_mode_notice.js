// The countdown of slow mode below the composer's field. Screen readers announce its beginning only.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"

const UPDATE_EVERY_MS = 250

export default class SlowModeNotice {
  #now
  #onEnd
  #until = 0
  #timer = null
  #seconds = el("span", { "aria-hidden": "true" })
  #node = el("p", { class: "composer__slow", id: "composer-slow", hidden: true })

  // `now()` returns the time of the server; `onEnd()` is called when the user may post again.
  constructor(now, onEnd) {
    this.#now = now
    this.#onEnd = onEnd
    this.#node.append(el("span", { role: "status" }, t("composer.slow_mode")), " ", this.#seconds)
  }

  get node() {
    return this.#node
  }
  get isWaiting() {
    return this.#until > this.#now()
  }

  // Actions

  show(until) {
    if (until === this.#until) return
    this.stop()
    this.#until = until
    if (!this.isWaiting) return
    this.#timer = setInterval(() => this.#tick(), UPDATE_EVERY_MS)
    this.#tick()
  }

  stop() {
    clearInterval(this.#timer)
    this.#timer = null
    this.#node.hidden = true
  }

  // Private

  #tick() {
    const n = Math.ceil((this.#until - this.#now()) / 1000)
    this.#node.hidden = n <= 0
    const text = t("composer.slow_mode_seconds", { n })
    if (this.#seconds.textContent !== text) this.#seconds.textContent = text
    if (n > 0) return
    this.stop()
    this.#onEnd()
  }
}
