// The line of a reply that shows the message which it answers; a click goes to that message.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"

export default class QuoteLine {
  node = el("div", { class: "message__quote", hidden: true })
  #onReveal
  #signature = null

  // `onReveal(id)` goes to a message.
  constructor(onReveal) {
    this.#onReveal = onReveal
  }

  // Shows a quotation, or nothing for null.
  update(quote) {
    const signature = quoteSignature(quote)
    if (signature === this.#signature) return
    this.#signature = signature
    this.node.hidden = !quote
    replace(this.node, quote && (quote.hidden ? gone() : this.#link(quote)))
  }

  #link({ id, author_name: name, excerpt }) {
    const label = t("reply.jump", { name, text: excerpt })
    return el(
      "button",
      { class: "message__quote-link", type: "button", "aria-label": label, on: { click: () => this.#onReveal(id) } },
      icon("reply"),
      bdi(name, "message__quote-author"),
      el("span", { class: "truncate", dir: "auto" }, excerpt),
    )
  }
}

// Returns what a quotation shows, to compare.
export function quoteSignature(quote) {
  return quote ? JSON.stringify([quote.id, quote.author_name, quote.excerpt, quote.hidden]) : ""
}

function gone() {
  return el("span", { class: "message__quote-gone" }, icon("reply"), t("reply.deleted"))
}
