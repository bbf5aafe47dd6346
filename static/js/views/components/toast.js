// Short news at the bottom of the page, one below the other, with at most one action.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { iconButton } from "./buttons.js"
import { explain } from "./error_messages.js"

const STAYS_MS = 5000
export const UNDO_MS = 8000

export default class Toasts {
  #root
  #alarm

  // `alarm` is the assertive region: errors are read at once.
  constructor(root, alarm) {
    this.#root = root
    this.#alarm = alarm
  }

  // `action` is `{ label, run }`. Returns the function that takes it away.
  show(text, { action = null, staysMs = STAYS_MS } = {}) {
    const toast = el("div", { class: "toast" }, el("span", { class: "toast__text" }, text))
    const close = () => {
      clearTimeout(timer)
      toast.remove()
    }
    if (action) toast.append(this.#actionButton(action, close))
    toast.append(iconButton("close", t("close"), { look: "small", click: close }))
    const timer = setTimeout(close, staysMs)
    this.#root.append(toast)
    this.#rise()
    return close
  }

  // A line that stays until it is taken away. Returns the function that does so.
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

  // The layer that was shown last is on top: above a dialog that is open.
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
