// The title of the page: where one is, and how much waits to be read. A tab in the background shows it too.
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

  // From the particular to the general, without the name of the program.
  set(...words) {
    this.#words = [...words, t("app.name")].join(" · ")
    this.#show()
  }

  // Private

  // What one looks at is being read.
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
