// The quick replies of the space above the composer.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { quickRepliesOf } from "../../models/conversation/quick_replies.js"

export default class QuickReplyBar {
  node = el("div", { class: "quick-replies", role: "group", "aria-label": t("quick_reply.title"), hidden: true })
  #onChoose
  #signature = "[]"

  // `onChoose(text)` posts a text, or runs the command in it.
  constructor(onChoose) {
    this.#onChoose = onChoose
  }

  update(settings) {
    const replies = quickRepliesOf(settings)
    const signature = JSON.stringify(replies)
    if (signature === this.#signature) return
    this.#signature = signature
    replace(
      this.node,
      replies.map(({ label, text }) => {
        const click = () => this.#onChoose(text)
        return el("button", { class: "quick-replies__reply truncate", type: "button", dir: "auto", title: text, on: { click } }, label)
      }),
    )
    this.node.hidden = replies.length === 0
  }
}
