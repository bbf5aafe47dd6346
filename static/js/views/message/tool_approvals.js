// Tool calls that wait for the decision of a moderator, above the queue bar.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { CONVERSATION_EVENTS } from "../../models/conversation/open_conversation.js"
import { may } from "../../models/members/rights.js"
import { toolName } from "../../models/characters/tools.js"
import { button } from "../components/button.js"

export default class ToolApprovals {
  #root
  #parts
  #shown = null
  #stops = []

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    this.#stops = [store.onAny([...CONVERSATION_EVENTS, "spaces", "roster"], () => this.#show())]
    this.#show()
  }

  unmount() {
    for (const stop of this.#stops) stop()
  }

  // Private

  // Rendered again only if the approvals have changed.
  #show() {
    const { store } = this.#parts
    const open = [...(store.openConversation?.approvals.values() ?? [])]
    const mayDecide = may(store.openSpace?.my_role, "decide_tools")
    const signature = JSON.stringify([open, mayDecide])
    if (signature === this.#shown) return
    this.#shown = signature
    this.#root.hidden = open.length === 0
    replace(
      this.#root,
      open.map((it) => this.#card(it, mayDecide)),
    )
  }

  #card(approval, mayDecide) {
    const name = this.#parts.store.openRoster.nameOf(approval.membership_id) ?? t("message.unknown_author")
    return el(
      "article",
      { class: "card approval", "data-approval": approval.id },
      el(
        "div",
        { class: "card__main" },
        el("h3", { class: "card__title" }, t("tools.requested", { name, tool: toolName(approval.tool) })),
        el("pre", { class: "tool-calls__text", dir: "auto", tabindex: "0" }, bdi(approval.arguments)),
        mayDecide ? this.#actions(approval) : el("p", { class: "card__text" }, t("tools.awaiting_moderator")),
      ),
    )
  }

  #actions({ id }) {
    const decide = (isAllowed) => async (event) => {
      const buttons = event.currentTarget.parentElement.querySelectorAll("button")
      for (const it of buttons) it.disabled = true
      await this.#parts.conversation.decideTool(id, isAllowed).catch((error) => this.#parts.toasts.error(error))
      for (const it of buttons) it.disabled = false
    }
    return el(
      "div",
      { class: "card__actions" },
      button(t("tools.allow"), { look: "small primary", click: decide(true) }),
      button(t("tools.refuse"), { look: "small", click: decide(false) }),
    )
  }
}
