// One line below the timeline: which people are typing. Who of the characters writes, says the queue bar.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { list } from "../../base/time.js"

const LOOK_EVERY_MS = 500

export default class Whisper {
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
    this.#stops = [store.on("room", () => this.#update()), store.on("cast", () => this.#update())]
    // An entry whose end got lost expires by itself.
    this.#timer = setInterval(() => this.#update(), LOOK_EVERY_MS)
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
    const { room, openRoster: roster, mySeat } = this.#parts.store
    if (!room) return ""
    const people = room.typing.active
      .filter((id) => id !== mySeat?.id)
      .map((id) => roster.nameOf(id))
      .filter(Boolean)
    if (people.length === 0) return ""
    if (people.length === 1) return t("typing.one", { name: people[0] })
    if (people.length > 3) return t("typing.several")
    return t("typing.some", { names: list(people) })
  }
}
