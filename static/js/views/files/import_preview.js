// The parts that the previews of files share: the warnings of a file, and the reason of a refusal.
import { bdi, el, icon } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { explain } from "../components/error_messages.js"

// Returns what is repaired or skipped, or null if nothing is.
export function warningList(sentences) {
  if (sentences.length === 0) return null
  return el(
    "section",
    { class: "import-warnings", "aria-label": t("import.warnings") },
    el("h4", {}, t("import.warnings")),
    el(
      "ul",
      {},
      sentences.map((it) => el("li", {}, it)),
    ),
  )
}

// Shows why a file was refused until the dialog is closed; nothing is stored.
export function openRefusal(file, error) {
  return openDialog({
    title: t("import.refused"),
    content: (close) => [
      el("p", { class: "dialog__lead" }, bdi(file.name)),
      el("p", { class: "outcome outcome--bad", role: "alert" }, icon("alert"), explain(error)),
      el("div", { class: "form__actions" }, button(t("close"), { autofocus: true, click: () => close() })),
    ],
  })
}
