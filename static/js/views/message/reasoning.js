// The reasoning of a model: collapsed, labelled, and always plain text.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { languageOf } from "../../models/message/text_language.js"

export default class ReasoningView {
  node = el("div", { class: "reasoning", hidden: true })
  #shown = ""

  // Replaced only if it has changed, so that it stays open.
  update(message) {
    const { reasoning, reasoning_truncated: isCut } = message?.metadata ?? {}
    const text = typeof reasoning === "string" ? reasoning : ""
    if (text === this.#shown) return
    this.#shown = text
    this.node.hidden = text === ""
    replace(this.node, text !== "" && folded(text, isCut === true))
  }
}

function folded(text, isCut) {
  const label = t("message.reasoning")
  const thoughts = { class: "reasoning__text", dir: "auto", tabindex: "0", role: "region", "aria-label": label }
  return el(
    "details",
    {},
    el("summary", { class: "reasoning__label" }, label),
    el("div", { ...thoughts, lang: languageOf(text) }, text),
    isCut && el("p", { class: "field__hint" }, t("message.reasoning_cut")),
  )
}
