// Short notifications at the bottom of the page, with at most one action each.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { iconButton } from "./button.js"
import { explain } from "./error_messages.js"

const STAYS_MS = 5000
export const UNDO_MS = 8000

export default class Toasts {
  #root
  #alarm

  // `alarm` is the assertive live region, which announces errors at once.
  constructor(root, alarm) {
    this.#root = root
    this.#alarm = alarm
  }

  // `action` is `{ label, run }`. With `staysMs: null` the toast stays until it is closed. Returns the
  // function that closes it.
  show(text, { action = null, staysMs = STAYS_MS } = {}) {
    const toast = el("div", { class: "toast" }, el("span", { class: "toast__text" }, text))
    const close = () => {
      clearTimeout(timer)
      toast.remove()
    }
    if (action) toast.append(this.#actionButton(action, close))
    toast.append(iconButton("close", t("close"), { look: "small", click: close }))
    const timer = staysMs === null ? null : setTimeout(close, staysMs)
    this.#root.append(toast)
    this.#rise()
    return close
  }

  // Shows a node until it is removed. Returns the function that removes it.
  keep(node) {
    this.#root.append(node)
    this.#rise()
    return () => node.remove()
  }

  error(error) {
    const text = explain(error)
    this.#alarm.textContent = text
    return this.show(text)
  }

  // Shows the toasts above an open dialog, because the popover that was shown last is on top.
  #rise() {
    if (this.#root.matches(":popover-open")) this.#root.hidePopover()
    this.#root.showPopover()
  }

  #actionButton({ label, run }, close) {
    const click = () => {
      close()
      run()
    }
    return el("button", { class: "toast__action", type: "button", on: { click } }, label)
  }
}
