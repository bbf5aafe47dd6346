// The parts of a conversation that were summarized, in the order of their messages.
import { el, reconcile, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { stateOf } from "../../models/summaries/summary.js"
import { originText, rangeLink, rangeText } from "./summary_text.js"

export default class PartList {
  #parts
  #follow
  #list = el("div", {})
  node

  // `follow(summary)` goes to the first message of a part.
  constructor(parts, { follow }) {
    this.#parts = parts
    this.#follow = follow
    const title = el("h3", { class: "panel__title" }, t("summary.parts"))
    this.node = el("section", { hidden: true, "data-section": "parts" }, title, this.#list)
  }

  show(summaries) {
    this.node.hidden = summaries.length === 0
    reconcile(this.#list, summaries, {
      key: (summary) => String(summary.id),
      create: () => el("details", { class: "block" }),
      update: (node, summary) => this.#fill(node, summary),
    })
  }

  // Private

  // Fills a part again only if it has changed, so that the focus stays.
  #fill(node, summary) {
    const signature = JSON.stringify(summary)
    if (node.dataset.signature === signature) return
    node.dataset.signature = signature
    const facts = summary.pinned_facts.map((it) => el("li", { dir: "auto" }, it))
    replace(
      node,
      el(
        "summary",
        { class: "block__summary" },
        el("span", { class: "summary-item__range" }, rangeText(summary)),
        el("span", { class: "soft truncate" }, t(`summary_state.${stateOf(summary)}`)),
      ),
      el(
        "div",
        { class: "summary-item" },
        el("div", { class: "summary__diff", dir: "auto" }, summary.content),
        facts.length > 0 && el("ul", { class: "summary-facts__theirs" }, facts),
        el("p", { class: "field__hint" }, originText(this.#parts.store, summary)),
        rangeLink(summary, this.#follow),
      ),
    )
  }
}
