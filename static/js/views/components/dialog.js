// A layer above the page, as the browser's own modal dialog: focus stays inside, Esc and the browser's
// Back close the top one, and focus goes back to where it was.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button, iconButton } from "./buttons.js"

let n = 0
let backStack = null

// From now on the browser's Back goes through these.
export function useBackStack(stack) {
  backStack = stack
}

// `content(close)` makes the body. Resolves with what `close` was given, undefined when dismissed.
// `isUnsaved()`: whether something would be lost that was typed; then one is asked before that.
export function openDialog({ title, content, wide = false, dismissable = true, isUnsaved = () => false }) {
  const titleId = `dialog-title-${n++}`
  const dialog = el("dialog", { class: `dialog ${wide ? "dialog--wide" : ""}`, "aria-labelledby": titleId })
  const opener = document.activeElement
  return new Promise((resolve) => {
    let result
    const close = (value) => {
      result = value
      dialog.close()
    }
    // What is stored as one leaves its field is stored.
    const leave = () => {
      if (dialog.contains(document.activeElement)) document.activeElement.blur()
      close()
    }
    // However one wants to leave it. Answers whether it closes at once.
    const dismiss = () => {
      if (!dismissable) return false
      if (!isUnsaved()) leave()
      else confirmDiscard().then((isSure) => isSure && close())
      return !dialog.open
    }
    dialog.append(
      el(
        "header",
        { class: "dialog__head" },
        el("h2", { class: "dialog__title", id: titleId }, title),
        dismissable && iconButton("close", t("close"), { click: dismiss }),
      ),
      el("div", { class: "dialog__body" }, content(close)),
    )
    const release = backStack?.open(dismiss)
    dialog.addEventListener("close", () => {
      release?.()
      dialog.remove()
      if (opener?.isConnected) opener.focus()
      resolve(result)
    })
    dialog.addEventListener("cancel", (event) => {
      if (event.target !== dialog) return
      event.preventDefault()
      dismiss()
    })
    if (dismissable) dialog.dataset.dismissable = ""
    document.body.append(dialog)
    dialog.showModal()
    dialog.querySelector("[autofocus]")?.focus()
  })
}

// What they were about is gone.
export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog[data-dismissable]")) dialog.close()
}

// Asks before something that cannot be undone, or that is more than one may expect. Resolves to whether to do it.
export async function confirm({ title, text, action, look = "danger" }) {
  return (
    (await openDialog({
      title,
      content: (close) => [
        el("p", { class: "dialog__lead" }, text),
        el(
          "div",
          { class: "form__actions" },
          button(t("cancel"), { look: "quiet", autofocus: true, click: () => close(false) }),
          button(action, { look, click: () => close(true) }),
        ),
      ],
    })) === true
  )
}

function confirmDiscard() {
  return confirm({ title: t("discard_title"), text: t("discard_text"), action: t("discard") })
}
