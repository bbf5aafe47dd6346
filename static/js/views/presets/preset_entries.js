// The prompt order of a preset: entries are dragged, or moved with Alt and the arrow keys. An open
// entry shows its text, role and position.
import { el, icon, reconcile } from "../../base/dom.js"
import { has, t } from "../../base/i18n.js"
import { volatileMacrosOf } from "../../models/presets/volatile_entries.js"
import { hasText, placeFrom, placeOf } from "../../models/presets/preset_document.js"
import { button, iconButton } from "../components/button.js"
import { area, check, field, input, select } from "../components/form.js"
import Sortable from "../components/sortable.js"

const ROLES = ["system", "user", "assistant"]
const TRIGGERS = ["normal", "continue", "impersonate", "swipe", "regenerate", "quiet"]
const MOVES = ["Alt+ArrowUp", "Alt+ArrowDown"]

export default class PresetEntries {
  #draft
  #onChange
  #open = new Set()
  #sortable
  node = el("ol", { class: "member-list preset__entries", "aria-label": t("preset.order") })

  constructor(draft, onChange) {
    this.#draft = draft
    this.#onChange = onChange
    const onDrop = ({ dataset }, index) => this.#moved(draft.moveTo(dataset.key, index))
    this.#sortable = new Sortable(this.node, { handle: ".member__grip", onDrop })
  }

  // Lifecycle

  mount() {
    this.node.addEventListener("keydown", this.#onKey)
    this.#sortable.mount()
    this.show()
  }

  unmount() {
    this.#sortable.unmount()
  }

  // Actions

  show() {
    const { entries } = this.#draft
    const focused = this.node.contains(document.activeElement) ? document.activeElement : null
    reconcile(this.node, entries, {
      key: ({ id }) => id,
      create: (entry) => this.#create(entry),
      update: (node, entry) => this.#update(node, entry, entries.indexOf(entry)),
    })
    if (focused?.isConnected) focused.focus()
  }

  add() {
    const { id } = this.#draft.add(t("preset.new_entry"))
    this.#open.add(id)
    this.#moved(true)
    this.#rowOf(id).querySelector(".preset__details input")?.focus()
  }

  // Private

  #rowOf(id) {
    return [...this.node.children].find(({ dataset }) => dataset.key === id)
  }

  #moved(isMoved) {
    if (!isMoved) return
    this.show()
    this.#onChange()
  }

  #onKey = (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key]
    const row = event.target.closest("li")
    if (!step || !event.altKey || !row) return
    event.preventDefault()
    this.#moved(this.#draft.moveBy(row.dataset.key, step))
  }

  #create({ id, label }) {
    const name = label || id
    const move = (step) => () => this.#moved(this.#draft.moveBy(id, step))
    const isOn = el("input", { type: "checkbox", "aria-label": t("preset.on", { name }) })
    isOn.addEventListener("change", () => this.#change(id, { enabled: isOn.checked }))
    const open = () => {
      if (!this.#open.delete(id)) this.#open.add(id)
      this.show()
    }
    const row = el(
      "div",
      { class: "member__row" },
      el("label", { class: "preset__check" }, isOn),
      el(
        "button",
        {
          class: "member__button",
          type: "button",
          "data-act": "open",
          "aria-keyshortcuts": MOVES.join(" "),
          on: { click: open },
        },
        el(
          "span",
          { class: "member__names grow" },
          el("span", { class: "member__name truncate" }),
          el("span", { class: "member__note truncate" }),
        ),
      ),
      iconButton("up", t("member.up", { name }), { look: "small", "data-act": "up", click: move(-1) }),
      iconButton("down", t("member.down", { name }), { look: "small", "data-act": "down", click: move(1) }),
      el("span", { class: "member__grip", title: t("member.drag"), "aria-hidden": "true" }, icon("grip")),
    )
    return el("li", { class: "member" }, row)
  }

  #update(node, entry, index) {
    const isOpen = this.#open.has(entry.id)
    node.classList.toggle("member--open", isOpen)
    node.classList.toggle("member--muted", !entry.enabled)
    node.querySelector(".member__name").textContent = entry.label || entry.id
    node.querySelector(".member__note").textContent = noteOf(entry, this.#draft.entries)
    node.querySelector(".preset__check input").checked = entry.enabled
    node.querySelector("[data-act=open]").setAttribute("aria-expanded", String(isOpen))
    const at = { up: index === 0, down: index === this.#draft.entries.length - 1 }
    for (const [act, isLast] of Object.entries(at))
      node.querySelector(`[data-act=${act}]`).setAttribute("aria-disabled", String(isLast))
    const details = node.querySelector(".preset__details")
    if (isOpen && !details) node.append(this.#details(entry))
    if (!isOpen) details?.remove()
  }

  #change(id, fields) {
    this.#draft.change(id, fields)
    this.#moved(true)
  }

  #details(entry) {
    const hint = () => el("p", { class: "field__hint" }, t("preset.slot_hint"))
    const parts = hasText(entry) ? this.#fields(entry) : hint()
    return el("div", { class: "member__details preset__details" }, parts)
  }

  #fields(entry) {
    const { id } = entry
    const on = (control, type, fields) => {
      control.addEventListener(type, () => this.#change(id, fields()))
      return control
    }
    const label = input({ value: entry.label, maxlength: "200" })
    const text = area({ value: entry.text ?? "", rows: "4" })
    const role = select(
      ROLES.map((it) => [it, t(`preset.role_${it}`)]),
      entry.role ?? "system",
    )
    on(label, "input", () => ({ label: label.value }))
    on(text, "input", () => ({ text: text.value }))
    on(role, "change", () => ({ role: role.value }))
    const roleField = field({ label: t("preset.role"), control: role }).node
    return [
      field({ label: t("preset.label"), control: label }).node,
      field({ label: t("preset.text"), control: text }).node,
      el("div", { class: "preset__grid" }, roleField, this.#place(entry)),
      this.#triggers(entry),
      entry.system_prompt ? this.#mark(entry) : null,
      entry.slot ? this.#override(entry) : this.#removal(entry),
    ]
  }

  #place({ id, ...entry }) {
    const { depth, order } = placeOf(entry)
    const where = select(
      [
        ["relative", t("preset.place_relative")],
        ["in_chat", t("preset.place_in_chat")],
      ],
      depth === null ? "relative" : "in_chat",
    )
    const number = (value, least) =>
      input({ type: "number", min: String(least), max: "10000", step: "1", value: String(value) })
    const depthField = field({
      label: t("preset.depth"),
      hint: t("preset.depth_hint"),
      control: number(depth ?? 4, 0),
    })
    const orderField = field({ label: t("preset.place_order"), control: number(order, -10000) })
    const fine = [depthField, orderField]
    const savePosition = () => {
      const isInChat = where.value === "in_chat"
      for (const { node } of fine) node.hidden = !isInChat
      const [deep, among] = fine.map(({ control }) => Math.round(Number(control.value)))
      this.#change(id, { place: placeFrom(isInChat ? deep : null, among) })
    }
    for (const { node } of fine) node.hidden = depth === null
    where.addEventListener("change", savePosition)
    for (const { control } of fine) control.addEventListener("change", savePosition)
    return [field({ label: t("preset.place"), control: where }).node, ...fine.map(({ node }) => node)]
  }

  // No selection means all kinds.
  #triggers({ id, triggers = [] }) {
    const chosen = new Set(triggers)
    const press = (name) => (event) => {
      if (!chosen.delete(name)) chosen.add(name)
      event.currentTarget.setAttribute("aria-pressed", String(chosen.has(name)))
      this.#change(id, { triggers: TRIGGERS.filter((it) => chosen.has(it)) })
    }
    const buttons = TRIGGERS.map((name) =>
      el(
        "button",
        {
          class: "choice",
          type: "button",
          "aria-pressed": String(chosen.has(name)),
          on: { click: press(name) },
        },
        t(`preset.trigger_${name}`),
      ),
    )
    return el(
      "div",
      { class: "field" },
      el("p", { class: "field__label" }, t("preset.triggers")),
      el("div", { class: "choices", role: "group", "aria-label": t("preset.triggers") }, buttons),
    )
  }

  #override({ id, forbid_overrides: isForbidden = false }) {
    const { node, control } = check({
      label: t("preset.forbid"),
      hint: t("preset.forbid_hint"),
      checked: isForbidden,
    })
    control.addEventListener("change", () => this.#change(id, { forbid_overrides: control.checked }))
    return node
  }

  #mark({ id }) {
    const hint = t("preset.not_sent_hint")
    const { node, control } = check({ label: t("preset.not_sent"), hint, checked: true })
    control.addEventListener("change", () => this.#change(id, { system_prompt: control.checked }))
    return node
  }

  #removal({ id }) {
    const click = () => {
      this.#draft.remove(id)
      this.#moved(true)
    }
    return el("div", {}, button(t("preset.remove_entry"), { look: "small quiet", icon: "trash", click }))
  }
}

function noteOf(entry, entries) {
  const { depth } = placeOf(entry)
  const what = entry.slot ? `preset.slot_${entry.slot}` : "preset.own_text"
  const role = hasText(entry) && (entry.role ?? "system") !== "system" && t(`preset.role_${entry.role}`)
  const place = depth !== null && t("preset.at_depth", { depth })
  const mark = entry.system_prompt && t("preset.not_sent")
  const macros = volatileMacrosOf(entry, entries).map((name) => `{{${name}}}`)
  const changes = macros.length > 0 && t("preset.changes_every_turn", { names: macros.join(", ") })
  return [has(what) ? t(what) : entry.slot, role, place, mark, changes].filter(Boolean).join(" · ")
}
