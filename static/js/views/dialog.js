// A layer above the page, as the browser's own modal dialog: focus stays inside, Esc closes the top
// one, and focus goes back to where it was.
import { el } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { button, iconButton } from "./buttons.js"

let n = 0

// `content(close)` makes the body. Resolves with what `close` was given, undefined when dismissed.
export function openDialog({ title, content, wide = false, dismissable = true }) {
  const titleId = `dialog-title-${n++}`
  const dialog = el("dialog", { class: `dialog ${wide ? "dialog--wide" : ""}`, "aria-labelledby": titleId })
  const opener = document.activeElement
  return new Promise((resolve) => {
    let result
    const close = (value) => {
      result = value
      dialog.close()
    }
    dialog.append(
      el(
        "header",
        { class: "dialog__head" },
        el("h2", { class: "dialog__title", id: titleId }, title),
        dismissable && closeButton(close),
      ),
      el("div", { class: "dialog__body" }, content(close)),
    )
    dialog.addEventListener("close", () => {
      dialog.remove()
      if (opener?.isConnected) opener.focus()
      resolve(result)
    })
    if (!dismissable) dialog.addEventListener("cancel", (event) => event.preventDefault())
    else dialog.dataset.dismissable = ""
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

function closeButton(close) {
  return iconButton("close", t("close"), { click: () => close() })
}
