// The editor of a round: finished and pending speakers in order. The round continues while the dialog
// is open; changes for a speaker that has begun are dropped.
import { bdi, el, icon, reconcile, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { DIRECTOR, describe } from "../../models/queue/queue.js"
import { may } from "../../models/members/rights.js"
import RoundDraft from "../../models/queue/round_draft.js"
import { avatar } from "../components/avatar.js"
import { button, iconButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { explain, explainSpeakerReason } from "../components/error_messages.js"
import { slotNote } from "./queue_slots.js"
import Sortable from "../components/sortable.js"

const MOVES = ["Alt+ArrowUp", "Alt+ArrowDown", "Delete"]

export async function openRoundDialog(parts) {
  let editor
  await openDialog({
    title: t("round.title"),
    content: (close) => {
      editor = new RoundEditor(parts, close)
      editor.mount()
      return editor.node
    },
  })
  editor.unmount()
}

class RoundEditor {
  #parts
  #close
  #draft
  #mayChange
  #sortable
  #stops = []
  #status = el("p", { class: "field__hint", role: "status" })
  #finished = el("ol", { class: "member-list" })
  #rest = el("ol", { class: "member-list", "aria-label": t("round.rest") })
  #empty = el("p", { class: "field__hint" })
  #add = el("div", { class: "choices", role: "group", "aria-label": t("round.add") })
  #actions = el("div", { class: "form__actions" })
  node = el("div", { class: "round" })

  constructor(parts, close) {
    const { store } = parts
    this.#parts = parts
    this.#close = close
    this.#draft = new RoundDraft(store.openConversation.queue)
    this.#mayChange = may(store.openSpace?.my_role, "control")
    const onDrop = ({ dataset }, index) => this.#moveTo(dataset.key, index)
    this.#sortable = new Sortable(this.#rest, { handle: ".member__grip", onDrop })
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    replace(
      this.node,
      this.#finished,
      el("h3", { class: "round__title" }, t("round.rest")),
      this.#empty,
      this.#rest,
      this.#mayChange && el("p", { class: "field__label" }, t("round.add")),
      this.#mayChange && this.#add,
      this.#status,
      this.#actions,
    )
    this.#rest.addEventListener("keydown", (event) => this.#onKey(event))
    if (this.#mayChange) this.#sortable.mount()
    this.#stops = [
      store.onAny(["queue", "restored"], () => this.#follow()),
      store.on("roster", () => this.#show()),
      store.on("open", () => this.#close()),
    ]
    this.#show()
  }

  unmount() {
    this.#sortable.unmount()
    for (const stop of this.#stops) stop()
  }

  // Private

  #follow() {
    const { openConversation } = this.#parts.store
    const was = openConversation && this.#draft.follow(openConversation.queue)
    if (was === "changed") this.#showStatus(this.#draft.isOver ? t("round.over") : t("error.stale_round"))
    this.#show()
  }

  #showStatus(text) {
    this.#status.textContent = text
  }

  #show() {
    const { store } = this.#parts
    if (!store.openConversation) return
    const mayChange = this.#mayChange && !this.#draft.isOver
    const gone = describe(store.openConversation).slots.filter(({ state }) =>
      ["spoken", "skipped", "speaking"].includes(state),
    )
    replace(
      this.#finished,
      gone.map((slot) => this.#finishedRow(slot)),
    )
    const { entries } = this.#draft
    const focused = this.#rest.contains(document.activeElement) ? document.activeElement : null
    reconcile(this.#rest, entries, {
      key: ({ key }) => key,
      create: (entry) => this.#create(entry, mayChange),
      update: (node, entry) => this.#update(node, entry, entries.indexOf(entry)),
    })
    if (focused?.isConnected) focused.focus()
    this.#empty.hidden = entries.length > 0
    this.#empty.textContent = this.#draft.isOver ? t("round.over") : t("round.none_left")
    replace(this.#add, mayChange && this.#speakers().map((member) => this.#addButton(member)))
    this.#showActions(mayChange)
  }

  // Members that can be in a round: not muted ones, and people only where they take turns.
  #speakers() {
    const { openRoster: roster, openSpace: space, openConversation } = this.#parts.store
    const characters = roster.characters.filter(({ participation }) => participation === "active")
    const round = openConversation?.queue.round
    const hasPeople = space?.humans_take_turns && round && round.audience === null
    return hasPeople ? [...characters, ...roster.turnTakers] : characters
  }

  #canSpeak(membershipId) {
    return this.#speakers().some(({ id }) => id === membershipId)
  }

  #showActions(mayChange) {
    if (this.#actions.dataset.may !== String(mayChange)) {
      this.#actions.dataset.may = String(mayChange)
      replace(
        this.#actions,
        button(mayChange ? t("cancel") : t("close"), { look: "quiet", click: () => this.#close() }),
        mayChange &&
          button(t("save"), { look: "primary", "data-act": "save", click: (event) => this.#save(event) }),
      )
    }
    const save = this.#actions.querySelector("[data-act=save]")
    if (save) save.disabled = !this.#draft.isChanged
  }

  #finishedRow(slot) {
    return el(
      "li",
      { class: `member member--${slot.state}` },
      el("div", { class: "member__row" }, this.#member(slot.membershipId, slotNote(slot))),
    )
  }

  #create({ key, membershipId }, mayChange) {
    const name = this.#nameOf(membershipId)
    const controls = [
      iconButton("up", t("member.up", { name }), {
        look: "small",
        "data-act": "up",
        click: () => this.#moveBy(key, -1),
      }),
      iconButton("down", t("member.down", { name }), {
        look: "small",
        "data-act": "down",
        click: () => this.#moveBy(key, 1),
      }),
      iconButton("close", t("round.remove", { name }), {
        look: "small",
        "data-act": "remove",
        "aria-keyshortcuts": MOVES.join(" "),
        click: () => this.#remove(key),
      }),
      el("span", { class: "member__grip", title: t("member.drag"), "aria-hidden": "true" }, icon("grip")),
    ]
    return el(
      "li",
      { class: "member", "data-membership-id": membershipId },
      el("div", { class: "member__row" }, this.#member(membershipId), mayChange && controls),
    )
  }

  #update(node, { membershipId, reason }, index) {
    const explanation = reason ? explainSpeakerReason(reason) : t("round.added")
    const note = membershipId === null || this.#canSpeak(membershipId) ? explanation : t("skip_reason.not_schedulable")
    node.querySelector(".member__note").textContent = note
    const [up, down] = ["up", "down"].map((act) => node.querySelector(`[data-act=${act}]`))
    up?.setAttribute("aria-disabled", String(index === 0))
    down?.setAttribute("aria-disabled", String(index === this.#draft.entries.length - 1))
  }

  #member(membershipId, note = "") {
    const member = this.#parts.store.openRoster.byId(membershipId)
    const name = this.#nameOf(membershipId)
    return [
      avatar({ name, url: member?.avatar_url, size: "small" }),
      el(
        "span",
        { class: "member__names grow" },
        bdi(name, "member__name truncate"),
        el("span", { class: "member__note" }, note),
      ),
    ]
  }

  #addButton({ id, display_name: name }) {
    const click = () => {
      this.#draft.add(id)
      this.#showStatus(t("round.added_at", { name, n: this.#draft.entries.length }))
      this.#show()
      this.#add.querySelector(`[data-membership-id="${id}"]`)?.focus()
    }
    return el(
      "button",
      {
        class: "choice",
        type: "button",
        "data-membership-id": id,
        "aria-label": t("round.add_one", { name }),
        on: { click },
      },
      icon("plus"),
      bdi(name),
    )
  }

  #nameOf(id) {
    if (id === null || id === DIRECTOR) return t("director.name")
    return this.#parts.store.openRoster.nameOf(id) ?? t("message.unknown_author")
  }

  // Changing

  #indexOf(key) {
    return this.#draft.entries.findIndex((entry) => entry.key === key)
  }

  #moveBy(key, step) {
    this.#moveTo(key, this.#indexOf(key) + step)
  }

  #moveTo(key, index) {
    const entry = this.#draft.entries[this.#indexOf(key)]
    if (!entry || !this.#draft.move(key, index)) return
    this.#showStatus(t("member.moved", { name: this.#nameOf(entry.membershipId), n: index + 1 }))
    this.#show()
  }

  // The focus moves to the next row, else to the buttons that add a speaker.
  #remove(key) {
    const index = this.#indexOf(key)
    this.#showStatus(t("round.removed", { name: this.#nameOf(this.#draft.entries[index].membershipId) }))
    this.#draft.remove(key)
    this.#show()
    const rows = this.#rest.children
    const next = (rows[index] ?? rows[index - 1])?.querySelector("[data-act=remove]")
    ;(next ?? this.#add.querySelector("button"))?.focus()
  }

  #onKey(event) {
    const { key } = event.target.closest("li")?.dataset ?? {}
    if (!key || !this.#mayChange) return
    const step = event.altKey ? { ArrowUp: -1, ArrowDown: 1 }[event.key] : null
    if (step) this.#moveBy(key, step)
    else if (event.key === "Delete") this.#remove(key)
    else return
    event.preventDefault()
  }

  async #save({ currentTarget }) {
    const { roundId, membershipIds } = this.#draft
    currentTarget.disabled = true
    // Drops members that were muted meanwhile, because the server refuses them.
    const wanted = membershipIds.filter((id) => id === null || this.#canSpeak(id))
    try {
      await this.#parts.conversation.changeRound(roundId, wanted)
      this.#close()
    } catch (error) {
      // The current state is already loaded and shown.
      this.#showStatus(this.#draft.isOver ? t("round.over") : explain(error))
      this.#show()
    }
  }
}
