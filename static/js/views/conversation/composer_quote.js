// The quotation above the composer: the message that the next post answers.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { iconButton } from "../components/button.js"

export default class ComposerQuote {
  node = el("div", { class: "composer__quote", role: "group", hidden: true })
  #shown = null
  #onRemove

  constructor(onRemove) {
    this.#onRemove = onRemove
  }

  // Shows a quotation, or nothing for null.
  update(quote) {
    if (quote === this.#shown) return
    this.#shown = quote
    this.node.hidden = !quote
    if (!quote) return replace(this.node)
    this.node.setAttribute("aria-label", t("reply.to", { name: quote.author_name }))
    replace(
      this.node,
      el(
        "p",
        { class: "composer__quote-text truncate" },
        bdi(quote.author_name, "composer__quote-author"),
        el("span", { dir: "auto" }, quote.excerpt),
      ),
      iconButton("close", t("reply.remove"), { look: "small", click: this.#onRemove }),
    )
  }
}
