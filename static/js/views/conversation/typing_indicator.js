// One line below the timeline with the people who are typing. The queue bar shows the characters that
// are writing.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { list } from "../../base/time.js"

const UPDATE_EVERY_MS = 500

export default class TypingIndicator {
  #root
  #parts
  #stops = []
  #timer = null
  #text = null

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  mount() {
    const { store } = this.#parts
    const events = ["typing", "messages", "restored", "roster"]
    this.#stops = [store.onAny(events, () => this.#update())]
    // Entries whose end event was lost expire.
    this.#timer = setInterval(() => this.#update(), UPDATE_EVERY_MS)
  }

  unmount() {
    clearInterval(this.#timer)
    for (const stop of this.#stops) stop()
  }

  #update() {
    const text = this.#sentence()
    if (text === this.#text) return
    this.#text = text
    if (text === "") replace(this.#root)
    else
      replace(
        this.#root,
        el("span", { class: "typing-indicator__dots", "aria-hidden": "true" }, el("i"), el("i"), el("i")),
        el("span", {}, text),
      )
  }

  #sentence() {
    const { openConversation, openRoster: roster, myMembership } = this.#parts.store
    if (!openConversation) return ""
    const people = openConversation.typing.active
      .filter((id) => id !== myMembership?.id)
      .map((id) => roster.nameOf(id))
      .filter(Boolean)
    if (people.length === 0) return ""
    if (people.length === 1) return t("typing.one", { name: people[0] })
    if (people.length > 3) return t("typing.several")
    return t("typing.some", { names: list(people) })
  }
}
