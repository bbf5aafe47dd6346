// Announces each new message of others once to screen readers.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"

const KEPT = 5

export default class Announcer {
  #root

  constructor(root) {
    this.#root = root
  }

  announce(messages) {
    for (const { author_name: person, persona, content } of messages)
      this.#root.append(el("p", {}, t("announce.message", { name: persona?.name ?? person, text: content })))
    while (this.#root.children.length > KEPT) this.#root.firstElementChild.remove()
  }
}
