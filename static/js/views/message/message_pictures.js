// The pictures of a message in the timeline. Their space is reserved before they are loaded.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { shownSize } from "../../models/message/pictures.js"

export default class MessagePictures {
  node = el("div", { class: "message__pictures", hidden: true })
  #onOpen
  #signature = ""

  // `onOpen(attachments, index)` shows a picture in full size.
  constructor(onOpen) {
    this.#onOpen = onOpen
  }

  update(attachments = []) {
    const signature = JSON.stringify(attachments.map(({ id, alt }) => [id, alt]))
    if (signature === this.#signature) return
    this.#signature = signature
    this.node.hidden = attachments.length === 0
    replace(
      this.node,
      attachments.map((it, index) => this.#picture(it, () => this.#onOpen(attachments, index))),
    )
  }

  #picture(attachment, open) {
    const { alt, thumbnail_url: src } = attachment
    const label = alt === "" ? t("picture.open") : t("picture.open_named", { alt })
    const image = el("img", {
      class: "message__picture-image",
      src,
      alt,
      ...shownSize(attachment),
      loading: "lazy",
      decoding: "async",
    })
    return el("button", { class: "message__picture", type: "button", "aria-label": label, on: { click: open } }, image)
  }
}
