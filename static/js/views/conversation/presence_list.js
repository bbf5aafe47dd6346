// The other people who are present: a few avatars in the header, which open the Cast tab.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { avatar } from "../components/avatar.js"

const MAX_AVATARS = 3

export default class PresenceList {
  #node
  #parts
  #signature = null
  #stops = []

  constructor(parts) {
    this.#parts = parts
    const click = () => parts.shell.openPanel("cast")
    const props = { class: "presence-list", type: "button", hidden: true, "data-id": "presence-list" }
    this.#node = el("button", { ...props, on: { click } })
  }

  get node() {
    return this.#node
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    this.#stops = [
      store.onAny(["presence", "restored"], () => this.#update()),
      store.on("roster", () => this.#update()),
    ]
    this.#update()
  }

  unmount() {
    for (const stop of this.#stops) stop()
  }

  // Private

  #update() {
    const { openConversation, openRoster, myMembership } = this.#parts.store
    if (!openConversation) return
    const here = openRoster.people
      .filter(({ id }) => id !== myMembership?.id && openConversation.presence.has(id))
      .map(({ id, display_name: name, avatar_url: url }) => ({ name, url, presence: openConversation.presence.get(id) }))
    const signature = JSON.stringify(here)
    if (signature === this.#signature) return
    this.#signature = signature
    const label = t("presence_list.label", { names: here.map(nameOf).join(", ") })
    this.#node.hidden = here.length === 0
    this.#node.setAttribute("aria-label", label)
    this.#node.title = label
    replace(
      this.#node,
      here.slice(0, MAX_AVATARS).map((person) => avatar({ ...person, size: "small" })),
      here.length > MAX_AVATARS &&
        el("span", { class: "presence-list__more", "aria-hidden": "true" }, `+${here.length - MAX_AVATARS}`),
    )
  }
}

function nameOf({ name, presence }) {
  return presence === "away" ? t("presence_list.away", { name }) : name
}
