// Shows how many bytes of a message are left when it is nearly as long as it can be.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"

const LONGEST_BYTES = 64 * 1024
const COUNTS_FROM_BYTES = 60 * 1024
const encoder = new TextEncoder()

export default class ComposerCounter {
  node = el("p", { class: "composer__count", id: "composer-count", role: "status", hidden: true })

  update(text) {
    const bytes = encoder.encode(text).length
    const isOver = bytes > LONGEST_BYTES
    this.node.hidden = bytes < COUNTS_FROM_BYTES
    this.node.classList.toggle("composer__count--over", isOver)
    const shown = isOver
      ? t("composer.too_long", { n: bytes - LONGEST_BYTES })
      : t("composer.remaining", { n: LONGEST_BYTES - bytes })
    if (this.node.textContent !== shown) this.node.textContent = shown
  }
}

export function isTooLong(text) {
  // A UTF-16 unit has at most three bytes, so that short texts need not be encoded.
  return text.length * 3 > LONGEST_BYTES && encoder.encode(text).length > LONGEST_BYTES
}
