// The editable list of the pinned facts of a summary.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { cleanFacts, MAX_FACT_CHARS, MAX_FACTS } from "../../models/summaries/summary.js"
import { button, iconButton } from "../components/button.js"
import { input } from "../components/form.js"

// Can be used as a field of a form: it shows errors of the whole list.
export default class FactList {
  #list = el("ul", { class: "summary-facts" })
  #none = el("p", { class: "field__hint" }, t("summary.no_facts"))
  #error = el("p", { class: "field__error", role: "alert", hidden: true })
  #add = button(t("summary.fact_add"), { look: "small", icon: "plus", click: () => this.#append() })
  #isReadOnly = false
  node

  constructor() {
    this.node = el(
      "fieldset",
      { class: "summary-facts__group" },
      el("legend", { class: "field__label" }, t("summary.facts")),
      el("p", { class: "field__hint" }, t("summary.facts_hint")),
      this.#none,
      this.#list,
      this.#error,
      el("div", {}, this.#add),
    )
  }

  // Returns the facts, each on one line, without empty ones.
  get values() {
    return cleanFacts(this.#inputs.map((it) => it.value))
  }

  // The control that gets the focus if the list is not accepted.
  get control() {
    return this.#inputs[0] ?? this.#add
  }

  showError(text) {
    this.#error.textContent = text
    this.#error.hidden = text === ""
  }

  fill(facts) {
    replace(
      this.#list,
      facts.map((it) => this.#row(it)),
    )
    this.#settle()
  }

  setReadOnly(isReadOnly) {
    this.#isReadOnly = isReadOnly
    this.#settle()
  }

  // Private

  get #inputs() {
    return [...this.#list.querySelectorAll("input")]
  }

  #row(text) {
    const control = input({ value: text, maxlength: String(MAX_FACT_CHARS), dir: "auto" })
    const remove = iconButton("trash", "", { click: () => this.#remove(row) })
    const row = el("li", { class: "field__row" }, control, remove)
    return row
  }

  #append() {
    this.#list.append(this.#row(""))
    this.#settle()
    this.#inputs.at(-1).focus()
  }

  // Moves the focus to the next fact.
  #remove(row) {
    const index = [...this.#list.children].indexOf(row)
    row.remove()
    this.#settle()
    const next = this.#inputs[index] ?? this.#inputs.at(-1) ?? this.#add
    next.focus()
  }

  // Numbers the facts, and shows what can be done with them.
  #settle() {
    for (const [index, row] of [...this.#list.children].entries()) {
      const [control, remove] = row.children
      const label = t("summary.fact_remove", { n: index + 1 })
      control.setAttribute("aria-label", t("summary.fact", { n: index + 1 }))
      control.readOnly = this.#isReadOnly
      remove.setAttribute("aria-label", label)
      remove.title = label
      remove.hidden = this.#isReadOnly
    }
    const n = this.#list.children.length
    this.#none.hidden = n > 0
    this.#add.hidden = this.#isReadOnly || n >= MAX_FACTS
  }
}
