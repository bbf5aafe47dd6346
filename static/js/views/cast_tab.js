// Cast: the people, and the characters in the order in which they speak.
import { bdi, el, reconcile, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { timeOfDay } from "../base/time.js"
import { may } from "../models/rights.js"
import { avatar } from "./avatar.js"
import { button, iconButton } from "./buttons.js"
import { askForCharacter } from "./character_dialog.js"
import { confirm } from "./dialog.js"

export default class CastTab {
  #root
  #parts
  #characters = el("ul", { class: "member-list" })
  #people = el("ul", { class: "member-list" })
  #empty = el("div", { class: "panel__empty", hidden: true })
  #add
  #open = null
  #stops = []

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    const add = () => askForCharacter(this.#parts, store.openSpace.id)
    this.#add = iconButton("plus", t("cast.add"), { look: "small", click: add })
    replace(
      this.#empty,
      el("p", {}, t("cast.empty")),
      button(t("cast.add"), { look: "small", icon: "plus", click: add }),
    )
    replace(
      this.#root,
      panelSection([t("cast.characters"), this.#add], this.#empty, this.#characters),
      panelSection([t("cast.people")], this.#people),
    )
    this.#stops = [
      store.on("cast", () => this.#update()),
      store.on("spaces", () => this.#update()),
      store.on("room", (what) => {
        if (what === "presence" || what === "restored") this.#update()
      }),
    ]
    this.#update()
  }

  unmount() {
    for (const stop of this.#stops) stop()
  }

  // Private

  #update() {
    const { openRoster: roster, openSpace: space } = this.#parts.store
    if (!space) return
    const mayCast = may(space.my_role, "cast")
    this.#add.hidden = !mayCast
    this.#empty.hidden = roster.characters.length > 0
    this.#empty.querySelector("button").hidden = !mayCast
    this.#list(this.#characters, roster.characters, mayCast)
    this.#list(this.#people, roster.people, false)
  }

  #list(parent, members, mayCast) {
    reconcile(parent, members, {
      key: (member) => String(member.id),
      create: (member) => this.#create(member),
      update: (node, member) => this.#fill(node, member, mayCast),
    })
  }

  #create({ id }) {
    const node = el("li", { class: "member", "data-membership-id": id })
    node.addEventListener("keydown", (event) => this.#onKey(event, id))
    return node
  }

  // A row is made anew only when it would look different: focus and a slider in use stay.
  #fill(node, member, mayCast) {
    const { store } = this.#parts
    const presence = member.kind === "human" ? (store.room?.presence.get(member.id) ?? "offline") : null
    const isOpen = this.#open === member.id
    const role = store.openSpace.my_role
    const signature = JSON.stringify([member, presence, isOpen, mayCast, role])
    if (node.dataset.signature === signature) return
    const focused = node.contains(document.activeElement) ? document.activeElement.dataset.act : null
    node.dataset.signature = signature
    node.classList.toggle("member--muted", member.participation === "muted")
    node.classList.toggle("member--open", isOpen)
    replace(node, this.#row(member, presence, isOpen, role), isOpen && this.#details(member))
    if (focused) node.querySelector(`[data-act="${focused}"]`)?.focus()
  }

  #row(member, presence, isOpen, role) {
    const isCharacter = member.kind === "character"
    const face = avatar({ name: member.display_name, url: member.avatar_url, presence })
    const names = el(
      "span",
      { class: "member__names" },
      bdi(member.display_name, "member__name truncate"),
      el("span", { class: "member__note" }, this.#note(member, presence)),
    )
    const canOpen = isCharacter && may(role, "cast")
    const main = canOpen
      ? el(
          "button",
          {
            class: "member__button",
            type: "button",
            "data-act": "open",
            "aria-expanded": String(isOpen),
            on: { click: () => this.#toggle(member.id) },
          },
          face,
          names,
        )
      : el("div", { class: "member__button" }, face, names)
    const speak =
      isCharacter &&
      may(role, "generate") &&
      member.participation !== "observer" &&
      this.#iconButton("speak", t("queue.speak", { name: member.display_name }), () =>
        this.#parts.room.generate(member.id),
      )
    return el("div", { class: "member__row" }, main, speak)
  }

  #note(member, presence) {
    const said = []
    if (member.participation !== "active") said.push(t(`participation.${member.participation}`))
    if (member.kind === "human") said.push(t(`role.${member.role}`), this.#whereabouts(member, presence))
    else if (said.length === 0) said.push(t("cast.character"))
    return said.join(" · ")
  }

  #whereabouts(member, presence) {
    const goneAt = this.#parts.store.room?.goneAt(member.id)
    return goneAt ? t("presence.gone", { at: timeOfDay(goneAt) }) : t(`presence.${presence}`)
  }

  #details(member) {
    const isMuted = member.participation === "muted"
    const { cast } = this.#parts
    const name = member.display_name
    return el(
      "div",
      { class: "member__details" },
      this.#talkativeness(member),
      el(
        "div",
        { class: "member__buttons" },
        this.#iconButton("up", t("cast.up", { name }), () => this.#move(member, -1)),
        this.#iconButton("down", t("cast.down", { name }), () => this.#move(member, 1)),
        this.#button(
          isMuted ? "sound" : "mute",
          isMuted ? t("cast.unmute") : t("cast.mute"),
          () => cast.mute(member, !isMuted),
          isMuted,
        ),
        this.#button("trash", t("cast.remove"), () => this.#remove(member)),
      ),
    )
  }

  #talkativeness(member) {
    const id = `talk-${member.id}`
    const change = ({ currentTarget }) =>
      this.#try(() => this.#parts.cast.setTalkativeness(member, Number(currentTarget.value)))
    const range = el("input", {
      class: "range",
      type: "range",
      id,
      "data-act": "talk",
      min: "0",
      max: "1",
      step: "0.05",
      value: String(member.talkativeness ?? 0.5),
      on: { change },
    })
    return el(
      "div",
      { class: "field" },
      el("label", { class: "field__label", for: id }, t("cast.talkativeness")),
      range,
      el("p", { class: "field__hint" }, t("cast.talkativeness_hint")),
    )
  }

  #iconButton(name, label, act) {
    return iconButton(name, label, { look: "small", "data-act": name, click: () => this.#try(act) })
  }

  #button(name, label, act, isPressed = null) {
    return button(label, {
      look: "small quiet",
      icon: name,
      "data-act": name,
      "aria-pressed": isPressed === null ? null : String(isPressed),
      click: () => this.#try(act),
    })
  }

  #toggle(id) {
    this.#open = this.#open === id ? null : id
    this.#update()
  }

  async #move(member, step) {
    const { cast, announcer } = this.#parts
    if (!(await cast.move(member, step))) return
    const place = this.#parts.store.openRoster.characters.findIndex(({ id }) => id === member.id) + 1
    announcer.append(el("p", {}, t("cast.moved", { name: member.display_name, n: place })))
    this.#characters
      .querySelector(`[data-membership-id="${member.id}"] [data-act="${step < 0 ? "up" : "down"}"]`)
      ?.focus()
  }

  async #remove(member) {
    const name = member.display_name
    if (
      await confirm({
        title: t("cast.remove_title", { name }),
        text: t("cast.remove_text", { name }),
        action: t("cast.remove"),
      })
    )
      await this.#parts.cast.remove(member)
  }

  #onKey(event, id) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key]
    const { openRoster: roster, openSpace: space } = this.#parts.store
    const member = roster.byId(id)
    if (!step || !event.altKey || member?.kind !== "character" || !may(space.my_role, "cast")) return
    event.preventDefault()
    const act = document.activeElement.dataset.act ?? "open"
    this.#try(async () => {
      await this.#move(member, step)
      this.#characters.querySelector(`[data-membership-id="${id}"] [data-act="${act}"]`)?.focus()
    })
  }

  async #try(act) {
    try {
      await act()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }
}

function panelSection([title, action = null], ...children) {
  return el(
    "section",
    { class: "panel__section" },
    el("div", { class: "panel__title" }, el("h2", {}, title), action),
    children,
  )
}
