// The form of one lorebook entry: common fields first, the others collapsed. Each change is saved when
// the field loses the focus.
import { el } from "../../base/dom.js"
import { has, t } from "../../base/i18n.js"
import { AT_DEPTH, changesOf, LOGICS, OUTLET, POSITIONS, TRIGGERS, valuesOf } from "../../models/lorebooks/lorebook_entry.js"
import { explain } from "../components/error_messages.js"
import { area, check, field, input, select } from "../components/form.js"

const ROLES = ["0", "1", "2"]
const MATCHES = [
  "match_persona_description",
  "match_character_description",
  "match_character_personality",
  "match_character_depth_prompt",
  "match_scenario",
  "match_creator_notes",
]

// `save(changes)` saves the changes and returns the updated entry.
export function entryForm(entry, save) {
  return new EntryForm(entry, save).node
}

class EntryForm {
  #values
  #save
  #fields = {}
  #error = el("p", { class: "form__error", role: "alert", hidden: true })
  node

  constructor(entry, save) {
    this.#values = valuesOf(entry)
    this.#save = save
    this.node = el(
      "form",
      { class: "form lore-form", novalidate: true },
      this.#error,
      this.#front(),
      this.#collapsible(t("lorebook.part_position"), this.#position()),
      this.#collapsible(t("lorebook.part_matching"), this.#matching()),
      this.#collapsible(t("lorebook.part_probability"), this.#probability()),
      this.#collapsible(t("lorebook.part_recursion"), this.#recursion()),
      this.#collapsible(t("lorebook.part_filter"), this.#filter()),
    )
    this.node.addEventListener("submit", (event) => event.preventDefault())
    this.node.addEventListener("change", () => this.#store())
    this.#adapt()
  }

  // Private

  #front() {
    return [
      this.#tick("enabled"),
      this.#text("name", { maxlength: "200" }),
      this.#area("keys", "2"),
      this.#area("content", "6"),
      this.#tick("constant"),
      this.#tick("vectorized"),
      this.#tick("selective"),
      this.#area("secondary_keys", "2"),
      this.#choice("logic", LOGICS),
    ]
  }

  #position() {
    return [
      this.#choice("position", POSITIONS),
      this.#number("depth", { min: "0", max: "10000" }),
      this.#choice("role", ROLES),
      this.#text("outlet_name"),
      this.#number("insertion_order"),
      this.#number("priority"),
      this.#tick("ignore_budget"),
    ]
  }

  #matching() {
    return [
      this.#number("scan_depth", { min: "0", max: "1000" }),
      this.#inherited("case_sensitive"),
      this.#inherited("match_whole_words"),
      el("p", { class: "field__hint" }, t("lorebook.additional_sources")),
      MATCHES.map((name) => this.#tick(name)),
    ]
  }

  #probability() {
    return [
      this.#tick("use_probability"),
      this.#number("probability", { min: "0", max: "100" }),
      this.#number("sticky", { min: "0" }),
      this.#number("cooldown", { min: "0" }),
      this.#number("delay", { min: "0" }),
      this.#text("group"),
      this.#tick("group_override"),
      this.#number("group_weight", { min: "0" }),
      this.#inherited("use_group_scoring"),
    ]
  }

  #recursion() {
    return [
      this.#tick("exclude_recursion"),
      this.#tick("prevent_recursion"),
      this.#number("level", { min: "0", max: "10" }),
    ]
  }

  #filter() {
    return [
      this.#text("filter_names"),
      this.#text("filter_tags"),
      this.#tick("filter_is_exclude"),
      el("p", { class: "field__hint" }, t("lorebook.triggers_hint")),
      TRIGGERS.map((word) => this.#trigger(word)),
    ]
  }

  #collapsible(title, fields) {
    return el(
      "details",
      { class: "lore-fold" },
      el("summary", { class: "lore-fold__title" }, title),
      el("div", { class: "form lore-fold__body" }, fields),
    )
  }

  // Fields

  #put(name, made) {
    made.control.name = name
    this.#fields[name] = made
    return made.node
  }

  #text(name, props = {}) {
    const control = input({ value: this.#values[name], autocomplete: "off", ...props })
    return this.#put(name, field({ ...words(name), control }))
  }

  #area(name, rows) {
    return this.#put(name, field({ ...words(name), control: area({ value: this.#values[name], rows }) }))
  }

  #number(name, props = {}) {
    const control = input({ type: "number", value: this.#values[name], ...props })
    return this.#put(name, field({ ...words(name), control }))
  }

  #tick(name) {
    return this.#put(name, check({ ...words(name), checked: this.#values[name] }))
  }

  #choice(name, keys) {
    const control = select(
      keys.map((key) => [key, t(`lorebook_choice.${name}_${key}`)]),
      this.#values[name],
    )
    return this.#put(name, field({ ...words(name), control }))
  }

  #inherited(name) {
    const options = ["", "yes", "no"].map((key) => [key, t(`lorebook_inherited.${key || "usual"}`)])
    return this.#put(name, field({ ...words(name), control: select(options, this.#values[name]) }))
  }

  #trigger(word) {
    const made = check({
      label: t(`lorebook_trigger.${word}`),
      checked: this.#values.triggers.includes(word),
      name: "triggers",
    })
    made.control.value = word
    return made.node
  }

  // Saving

  // Hides fields that do not apply to the selected position.
  #adapt() {
    const { position } = this.#read()
    for (const name of ["depth", "role"]) this.#fields[name].node.hidden = position !== AT_DEPTH
    this.#fields.outlet_name.node.hidden = position !== OUTLET
  }

  #read() {
    const values = {}
    for (const [name, { control }] of Object.entries(this.#fields))
      values[name] = control.type === "checkbox" ? control.checked : control.value
    const triggers = this.node.querySelectorAll("[name=triggers]:checked")
    return { ...values, triggers: [...triggers].map((it) => it.value) }
  }

  async #store() {
    this.#adapt()
    const values = this.#read()
    const changes = changesOf(this.#values, values)
    if (Object.keys(changes).length === 0) return
    this.#error.hidden = true
    try {
      await this.#save(changes)
      this.#values = values
    } catch (error) {
      this.#error.textContent = explain(error)
      this.#error.hidden = false
    }
  }
}

function words(name) {
  const about = `lorebook_field.${name}_hint`
  return { label: t(`lorebook_field.${name}`), hint: has(about) ? t(about) : null }
}
