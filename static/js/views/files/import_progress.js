// The progress of an import: a bar, a Cancel button, and the result.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button } from "../components/button.js"
import { explain } from "../components/error_messages.js"
import { reportNotes } from "./chat_preview.js"

// `begin()` sends the file and returns the import. `close(import)` is called with a finished import to
// open it, else without an argument.
export function progress({ files, begin, close, again }) {
  const node = el("div", { class: "import", "aria-live": "polite" })
  run()
  return node

  async function run() {
    const bar = el("progress", { class: "import__bar", max: "1", "aria-label": t("chats.progress") })
    const words = el("p", { class: "import__text" }, t("chats.sending"))
    const stop = button(t("cancel"), { look: "quiet", disabled: true })
    replace(node, words, bar, el("div", { class: "form__actions" }, stop))
    try {
      const started = await begin()
      stop.disabled = false
      stop.addEventListener("click", () => {
        stop.disabled = true
        files.cancelImport(started.id).catch(() => {})
      })
      const finished = await files.follow(started.id, (now) => {
        // The import of a space reports no bytes: its bar is indeterminate.
        if (now.bytes_read > 0) bar.value = now.bytes_read / now.bytes_total
        words.textContent = t("chats.so_far", { n: now.n_messages })
      })
      if (finished.status === "succeeded") return showDone(finished)
      if (finished.status === "canceled") return showFailed(t("chats.canceled"))
      showFailed(finished.error ? explain(finished.error) : t("chats.failed"))
    } catch (error) {
      showFailed(explain(error))
    }
  }

  function showDone(finished) {
    replace(
      node,
      el("p", { class: "import__text" }, t("chats.done", { n: finished.n_messages })),
      ...reportNotes(finished.report),
      el(
        "div",
        { class: "form__actions" },
        button(t("close"), { look: "quiet", click: () => close() }),
        button(t("chats.open"), { look: "primary", autofocus: true, click: () => close(finished) }),
      ),
    )
    node.querySelector("[autofocus]").focus()
  }

  function showFailed(text) {
    const back = button(t("chats.again"), { click: again })
    const actions = el("div", { class: "form__actions" }, button(t("close"), { look: "quiet", click: () => close() }), back)
    replace(node, el("p", { class: "form__error", role: "alert" }, text), actions)
    back.focus()
  }
}
