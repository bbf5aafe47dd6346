// What replaces the composer: the reason why the user cannot write, or the notice of their active copilot.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { describeCopilot, locksComposer } from "../../models/conversation/copilot.js"
import { copilotNotice } from "./copilot_notice.js"

export default class ComposerLock {
  #root
  #box
  #parts
  #onCopilot
  // The notice that replaces the box while the copilot is active, and the values it shows.
  #notice = null
  #signature = null

  // `box` is hidden while the user cannot write; `onCopilot()` is called when the copilot's notice is shown.
  constructor(root, box, parts, onCopilot) {
    this.#root = root
    this.#box = box
    this.#parts = parts
    this.#onCopilot = onCopilot
  }

  get isLocked() {
    return this.#reason() !== null || this.#notice !== null
  }

  // Shows the reason or the notice in place of the box, or the box.
  update() {
    const reason = this.#reason()
    const isCopilotActive = reason === null && this.#updateNotice()
    this.#box.hidden = reason !== null || isCopilotActive
    this.#root.querySelector(".composer__closed")?.remove()
    if (reason) this.#root.append(el("p", { class: "composer__closed" }, reason))
  }

  // Private

  // Shows the copilot notice. Returns whether it is shown.
  #updateNotice() {
    const { store } = this.#parts
    const { myMembership: membership, openConversation } = store
    const { conversationId, queue } = openConversation
    const copilot = describeCopilot({ membership, conversationId, state: queue.state })
    const shown = locksComposer(copilot) ? JSON.stringify([copilot, membership.display_name]) : null
    if (shown === this.#signature) return shown !== null
    this.#signature = shown
    const hadFocus = this.#root.contains(document.activeElement)
    this.#notice?.remove()
    this.#notice = shown && copilotNotice(this.#parts, copilot, membership.display_name)
    if (this.#notice) {
      this.#onCopilot()
      this.#root.append(this.#notice)
    } else this.#box.hidden = false
    if (hadFocus) (this.#notice?.querySelector("button:last-of-type") ?? this.#box.querySelector("textarea")).focus()
    return shown !== null
  }

  // Returns why the user cannot write, or null.
  #reason() {
    const { myMembership, openSpace, openRoster } = this.#parts.store
    if (!openSpace || openRoster.active.length === 0) return null
    if (openSpace.status === "archived") return t("composer.archived")
    if (!myMembership) return t("composer.not_a_member")
    return myMembership.participation === "observer" ? t("composer.observer") : null
  }
}
