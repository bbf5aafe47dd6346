// Announces each new message of others once to screen readers.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { isNarrator } from "../../models/message/narration.js"
import { textOf } from "../../models/message/pictures.js"

const KEPT = 5

export default class Announcer {
  #root

  constructor(root) {
    this.#root = root
  }

  announce(messages) {
    for (const message of messages) {
      const values = { name: nameOf(message), text: textOf(message) }
      const text = message.audience ? t("whisper.announce", values) : t("announce.message", values)
      this.#root.append(el("p", {}, text))
    }
    while (this.#root.children.length > KEPT) this.#root.firstElementChild.remove()
  }
}

function nameOf(message) {
  if (isNarrator({ message })) return t("message.narrator")
  return message.persona?.name ?? message.author_name
}
