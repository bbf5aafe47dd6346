// The page that is shown while another page is loading. It has no field: what a user wrote in the last
// conversation must not get lost, or into the next one.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { sidebarButton } from "../components/empty_state.js"

export default class LoadingPage {
  // The conversation that is loading, or null.
  conversationId
  // The message that the conversation will show first, or null.
  messageId = null
  #openSidebar

  constructor({ openSidebar, conversationId = null }) {
    this.#openSidebar = openSidebar
    this.conversationId = conversationId
  }

  // Lifecycle

  mount(main) {
    const text = el("p", { class: "empty-state__loading" }, t("loading"))
    main.append(el("section", { class: "empty-state", "aria-busy": "true" }, sidebarButton(this.#openSidebar), text))
  }

  unmount() {}

  // Actions

  reveal(messageId) {
    this.messageId = messageId
  }
}
