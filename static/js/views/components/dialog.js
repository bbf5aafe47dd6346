// Modal dialogs: focus stays inside, Esc and the browser's Back close the topmost one, and focus
// returns to the opener.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button, iconButton } from "./button.js"

let n = 0
let backStack = null

// Sets the stack through which the browser's Back closes dialogs.
export function useBackStack(stack) {
  backStack = stack
}

// Adds a layer to this stack; see `BackStack.open`. Returns the function to call when it is closed.
export function openLayer(dismiss) {
  return backStack?.open(dismiss) ?? (() => {})
}

// `content(close)` returns the body. Resolves with the argument of `close`, or undefined if the dialog
// was dismissed. `isUnsaved()` returns whether there are unsaved changes, which must be confirmed
// before the dialog closes.
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
    // Fields that save on change save when they lose the focus.
    const leave = () => {
      if (dialog.contains(document.activeElement)) document.activeElement.blur()
      close()
    }
    // Handles all ways to dismiss the dialog. Returns whether it closed immediately.
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

// Closes all dialogs, because the conversation they belong to is gone.
export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog[data-dismissable]")) dialog.close()
}

// Asks for confirmation. Resolves to true or false.
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

// Asks whether unsaved changes may be lost.
export function confirmDiscard() {
  return confirm({ title: t("discard_title"), text: t("discard_text"), action: t("discard") })
}
