// The line above the text of a whisper that names those who see it.
import { el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"

export default class WhisperMark {
  node = el("p", { class: "message__whisper", hidden: true })
  #names = null

  // `names` are those to whom it was whispered; null for a message to everyone.
  update(names) {
    if (names === this.#names) return
    this.#names = names
    this.node.hidden = names === null
    replace(this.node, names !== null && [icon("lock"), el("span", { dir: "auto" }, t("whisper.to", { names }))])
  }
}
