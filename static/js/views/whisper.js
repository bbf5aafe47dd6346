// One line above the field: which people are typing, which character is writing.
import { el, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"

const LOOK_EVERY_MS = 1000

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
    else replace(this.#root, el("span", { class: "whisper__dots", "aria-hidden": "true" }, el("i"), el("i"), el("i")), el("span", {}, text))
  }

  #sentence() {
    const { room, openRoster: roster, mySeat } = this.#parts.store
    if (!room) return ""
    const people = room.typing.active.filter((id) => id !== mySeat?.id).map((id) => roster.nameOf(id)).filter(Boolean)
    const writer = room.stream ? roster.nameOf(room.stream.membershipId) : null
    const said = []
    if (writer) said.push(t("whisper.writing", { name: writer }))
    if (people.length === 1) said.push(t("whisper.typing", { name: people[0] }))
    if (people.length === 2 || people.length === 3) said.push(t("whisper.typing_some", { names: people.slice(0, -1).join(", "), last: people.at(-1) }))
    if (people.length > 3) said.push(t("whisper.typing_several"))
    return said.join(" ")
  }
}
