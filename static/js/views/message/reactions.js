// The reactions below a message: an emoji with its count for each, which the user can add or remove.
import { el, replace } from "../../base/dom.js"
import { locale, t } from "../../base/i18n.js"
import { describeReactions } from "../../models/message/reactions.js"

export default class ReactionsView {
  node = el("div", { class: "reactions", hidden: true })
  #context
  #signature = ""

  // `context` has `roster()`, `myMembershipId()`, `onReact(message, emoji)`, `mayReact()`.
  constructor(context) {
    this.#context = context
  }

  update(message) {
    const { roster, myMembershipId, mayReact } = this.#context
    const nameOf = (id) => roster().byId(id)?.display_name ?? t("message.unknown_author")
    const shown = describeReactions(message?.reactions, myMembershipId(), nameOf)
    const signature = JSON.stringify([shown, mayReact()])
    if (signature === this.#signature) return
    this.#signature = signature
    this.node.hidden = shown.length === 0
    const focused = this.node.contains(document.activeElement) ? document.activeElement.dataset.emoji : null
    replace(
      this.node,
      shown.map((it) => this.#chip(message, it)),
    )
    const again = [...this.node.children].find((it) => it.dataset.emoji === focused) ?? this.node.lastElementChild
    if (focused) (again ?? this.node.closest(".message"))?.focus()
  }

  #chip(message, { emoji, count, isMine, names }) {
    const list = new Intl.ListFormat(locale()).format(names)
    const label = t("reaction.by", { emoji, n: count, names: list })
    return el(
      "button",
      {
        class: "reactions__chip",
        type: "button",
        title: list,
        "aria-label": label,
        "aria-pressed": String(isMine),
        disabled: !this.#context.mayReact(),
        dataset: { emoji },
        on: { click: () => this.#context.onReact(message, emoji) },
      },
      el("span", { "aria-hidden": "true" }, emoji),
      el("span", { class: "reactions__count", "aria-hidden": "true" }, String(count)),
    )
  }
}
