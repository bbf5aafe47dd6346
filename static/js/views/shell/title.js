// The title of the document with the number of unread messages.
import { t } from "../../base/i18n.js"
import { countText } from "../components/badge.js"

export default class Title {
  #store
  #words = t("app.name")

  constructor(store) {
    this.#store = store
  }

  // Lifecycle

  mount() {
    for (const name of ["spaces", "open"]) this.#store.on(name, this.#show)
    document.addEventListener("visibilitychange", this.#show)
  }

  // Actions

  // `words` go from the specific to the general, without the name of the program.
  set(...words) {
    this.#words = [...words, t("app.name")].join(" · ")
    this.#show()
  }

  // Private

  // The visible conversation is not counted.
  #unread() {
    const { spaces, openConversation } = this.#store
    const visibleId = document.hidden ? null : openConversation?.conversationId
    return spaces.reduce((sum, space) => sum + this.#store.unread(space.id, visibleId), 0)
  }

  #show = () => {
    const n = this.#unread()
    const title = n > 0 ? t("title.unread", { n: countText(n), title: this.#words }) : this.#words
    if (document.title !== title) document.title = title
  }
}
