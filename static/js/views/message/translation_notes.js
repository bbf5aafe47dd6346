// @ts-check
// What a message says about its translation: that it is one, with a button that shows the original, that it is
// being made, or why there is none.
import { el, icon } from "../../base/dom.js"
import { has, t } from "../../base/i18n.js"
import { button } from "../components/button.js"
import { explain } from "../components/error_messages.js"

// Returns a value that changes with what `translationNotes` shows.
export function translationSignature({ entry, isShown }) {
  return entry && `${entry.state}${isShown}${entry.language ?? ""}${entry.text?.length ?? ""}`
}

export function translationNotes(translations, message) {
  const { entry, isShown } = translations.of(message)
  if (!entry) return null
  if (entry.state === "loading") return note("clock", t("translation.loading"))
  const click = () => translations.toggle(message)
  if (entry.state === "failed") {
    const retry = button(t("retry"), { look: "small quiet", "data-id": "translation", click })
    return [note("alert", t("translation.failed", { reason: reasonOf(entry.error) })), retry]
  }
  const label = isShown ? t("translation.show_original") : t("translation.show_translation")
  const other = button(label, { look: "small quiet", "data-id": "translation", click })
  return [isShown && note("translate", t("translation.translated")), other]
}

function reasonOf(error) {
  const key = `translation.${error.code}`
  return has(key) ? t(key) : explain(error)
}

function note(name, text) {
  return el("span", { class: "message__note" }, icon(name), text)
}
