// The Cast tab: the characters in their order, and the people. A row opens for users who can change the
// membership, one's own row always.
import { bdi, el, icon, reconcile, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { timeOfDay } from "../../base/time.js"
import { modelChoiceOf } from "../../models/providers/provider_kinds.js"
import { may, mayManageMember } from "../../models/members/rights.js"
import { avatar } from "../components/avatar.js"
import { button, iconButton } from "../components/button.js"
import { loadModule, openCharacterDialog, openInviteDialog } from "../on_demand.js"
import Sortable from "../components/sortable.js"
import { inheritedAudience, triggerLabel } from "../whispers/reply_audience.js"

const MOVES = ["Alt+ArrowUp", "Alt+ArrowDown"]

export default class MembersTab {
  #root
  #parts
  // Loaded when a member is first opened.
  #details = null
  // The member that opens when the details are loaded.
  #requested = null
  #characters = el("ul", { class: "member-list" })
  #people = el("ul", { class: "member-list" })
  #empty = el("div", { class: "panel__empty", hidden: true })
  #add
  #invite
  #open = null
  #sortable
  #stops = []

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
    this.#sortable = new Sortable(this.#characters, {
      handle: ".member__grip",
      onDrop: (row, index) => this.#drop(Number(row.dataset.membershipId), index),
    })
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    const add = () => openCharacterDialog(this.#parts, store.openSpace.id)
    this.#add = iconButton("plus", t("member.add"), { look: "small", click: add })
    this.#invite = button(t("invite.people"), {
      look: "small quiet",
      icon: "plus",
      click: () => openInviteDialog(this.#parts, store.openSpace),
    })
    replace(
      this.#empty,
      el("p", {}, t("member.empty")),
      button(t("member.add"), { look: "small", icon: "plus", click: add }),
    )
    replace(
      this.#root,
      panelSection([t("member.characters"), this.#add], this.#empty, this.#characters),
      panelSection([t("member.people"), this.#invite], this.#people),
    )
    this.#stops = [
      store.on("roster", () => this.#update()),
      store.on("spaces", () => this.#update()),
      store.on("providers", () => this.#update()),
      store.onAny(["presence", "restored", "messages"], () => this.#update()),
    ]
    this.#sortable.mount()
    this.#update()
  }

  unmount() {
    this.#sortable.unmount()
    for (const stop of this.#stops) stop()
  }

  // Private

  #update() {
    const { store } = this.#parts
    const { openRoster: roster, openSpace: space } = store
    if (!space) return
    const mayManageCharacters = may(space.my_role, "characters")
    this.#add.hidden = !mayManageCharacters
    this.#invite.hidden = !may(space.my_role, "invite")
    this.#empty.hidden = roster.characters.length > 0 || !store.hasRoster(space.id)
    this.#empty.querySelector("button").hidden = !mayManageCharacters
    this.#list(this.#characters, roster.characters)
    this.#list(this.#people, roster.people)
  }

  #list(parent, members) {
    reconcile(parent, members, {
      key: (member) => String(member.id),
      create: (member) => this.#create(member),
      update: (node, member) => this.#fill(node, member),
    })
  }

  #create({ id }) {
    const node = el("li", { class: "member", "data-membership-id": id })
    node.addEventListener("keydown", (event) => this.#onKey(event, id))
    return node
  }

  // Replaces a row only if it has changed, so that focus and a slider in use are kept.
  #fill(node, member) {
    const { store } = this.#parts
    const { my_role: role } = store.openSpace
    const presence = member.kind === "human" ? (store.openConversation?.presence.get(member.id) ?? "offline") : null
    const canOpen = this.#canOpen(member, role)
    const isOpen = canOpen && this.#open === member.id
    const { position, ...shown } = member
    const { providers } = this.#parts.store
    const models = isOpen ? providers : modelChoiceOf(member, providers)
    const speaker = { id: member.id, name: member.display_name }
    const label = triggerLabel(store, speaker, inheritedAudience(store))
    const signature = JSON.stringify([shown, presence, canOpen, isOpen, role, models, label])
    if (node.dataset.signature === signature) return
    const focused = node.contains(document.activeElement) ? document.activeElement.dataset.act : null
    node.dataset.signature = signature
    node.classList.toggle("member--muted", member.participation === "muted")
    node.classList.toggle("member--open", isOpen)
    replace(
      node,
      this.#row(member, { presence, canOpen, isOpen, role, triggerLabel: label }),
      isOpen && this.#details.build(member, role),
    )
    if (focused) node.querySelector(`[data-act="${focused}"]`)?.focus()
  }

  #canOpen(member, role) {
    if (member.kind === "character") return may(role, "characters")
    const isOwn = this.#isOwn(member)
    return isOwn || mayManageMember(role, member, isOwn)
  }

  #isOwn(member) {
    return member.id === this.#parts.store.myMembership?.id
  }

  #row(member, { presence, canOpen, isOpen, role, triggerLabel: speakLabel }) {
    const isCharacter = member.kind === "character"
    const name = member.display_name
    const label = [
      avatar({ name, url: member.avatar_url, presence }),
      el(
        "span",
        { class: "member__names" },
        bdi(name, "member__name truncate"),
        el("span", { class: "member__note" }, this.#note(member, presence)),
        !isCharacter && member.persona && this.#persona(member.persona),
      ),
    ]
    const speak =
      isCharacter &&
      may(role, "generate") &&
      member.participation !== "observer" &&
      iconButton("speak", speakLabel, {
        look: "small",
        "data-act": "speak",
        click: () => this.#try(() => this.#parts.conversation.generate(member.id)),
      })
    return el(
      "div",
      { class: "member__row" },
      canOpen ? this.#opener(member, isOpen, label) : el("div", { class: "member__button" }, label),
      speak,
      isCharacter && canOpen && grip(),
    )
  }

  #opener(member, isOpen, label) {
    return el(
      "button",
      {
        class: "member__button",
        type: "button",
        "data-act": "open",
        "aria-expanded": String(isOpen),
        "aria-keyshortcuts": member.kind === "character" ? MOVES.join(" ") : null,
        on: { click: () => this.#toggle(member.id) },
      },
      label,
    )
  }

  #persona(text) {
    return el("span", { class: "member__persona truncate", title: text }, t("member.played_persona", { text }))
  }

  #note(member, presence) {
    const notes = []
    if (member.participation !== "active") notes.push(t(`participation.${member.participation}`))
    if (member.kind === "human") {
      if (member.is_away) notes.push(t("member.away"))
      if (this.#isOwn(member)) notes.push(t("member.you"))
      notes.push(t(`role.${member.role}`), this.#presenceText(member, presence))
    } else if (notes.length === 0) notes.push(t("member.character"))
    const modelChoice = modelChoiceOf(member, this.#parts.store.providers)
    if (modelChoice) notes.push(t("member.speaks_with", { model: modelChoice.model }))
    return notes.join(" · ")
  }

  #presenceText(member, presence) {
    const goneAt = this.#parts.store.openConversation?.goneAt(member.id)
    return goneAt ? t("presence.last_seen", { at: timeOfDay(goneAt) }) : t(`presence.${presence}`)
  }

  // While the details load, a second click on a member does not close it again.
  #toggle(id) {
    if (!this.#details) return this.#openFirst(id)
    this.#open = this.#open === id ? null : id
    this.#update()
  }

  async #openFirst(id) {
    const isLoading = this.#requested !== null
    this.#requested = id
    if (isLoading) return
    const module = await loadModule(this.#parts, () => import("./member_details.js"))
    const move = (member, step) => this.#moveBy(member, step)
    if (module) {
      this.#details = new module.default(this.#parts, { move })
      this.#open = this.#requested
    }
    this.#requested = null
    this.#update()
  }

  // Order

  #drop(id, index) {
    const member = this.#parts.store.openRoster.byId(id)
    if (member) this.#try(() => this.#moveTo(member, index))
  }

  async #moveBy(member, step) {
    await this.#moveTo(member, this.#parts.store.openRoster.indexOf(member.id) + step)
    this.#focus(member.id, step < 0 ? "up" : "down")
  }

  async #moveTo(member, index) {
    const { members, announcer } = this.#parts
    if (!(await members.moveTo(member, index))) return
    announcer.append(el("p", {}, t("member.moved", { name: member.display_name, n: index + 1 })))
  }

  #focus(id, act) {
    this.#characters.querySelector(`[data-membership-id="${id}"] [data-act="${act}"]`)?.focus()
  }

  #onKey(event, id) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key]
    const { openRoster: roster, openSpace: space } = this.#parts.store
    const member = roster.byId(id)
    if (!step || !event.altKey || member?.kind !== "character" || !may(space.my_role, "characters")) return
    event.preventDefault()
    const act = document.activeElement.dataset.act ?? "open"
    this.#try(async () => {
      await this.#moveTo(member, roster.indexOf(id) + step)
      this.#focus(id, act)
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

// For pointers only; the keyboard moves a row with Alt and the arrow keys.
function grip() {
  return el("span", { class: "member__grip", title: t("member.drag"), "aria-hidden": "true" }, icon("grip"))
}

function panelSection([title, action = null], ...children) {
  return el(
    "section",
    { class: "panel__section" },
    el("div", { class: "panel__title" }, el("h2", {}, title), action),
    children,
  )
}
