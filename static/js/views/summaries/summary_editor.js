// The form of the running summary: its text and its pinned facts. If the summary has changed in the meantime,
// both texts are shown and the user chooses one.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { changesOf, conflictsOf, MAX_CONTENT_CHARS, valuesOf, withTheirs } from "../../models/summaries/summary.js"
import { button, submitButton } from "../components/button.js"
import { area, field, form } from "../components/form.js"
import FactList from "./fact_list.js"

export default class SummaryEditor {
  #parts
  #onChange
  // The newest summary that is known, the values of the one that the user has seen, and the names of the
  // fields that were changed twice.
  #current = null
  #seen = null
  #conflicts = []
  #isReadOnly = false
  #content = field({
    label: t("summary.content"),
    hint: t("summary.content_hint"),
    control: area({
      class: "input input--area summary__text",
      rows: "8",
      maxlength: String(MAX_CONTENT_CHARS),
      dir: "auto",
    }),
  })
  #facts = new FactList()
  #notice = el("div", { class: "message__conflict", role: "alert", hidden: true })
  #theirs = button(t("edit.use_theirs"), { hidden: true, click: () => this.#keepTheirs() })
  #submit = submitButton(t("save"))
  #actions = el("div", { class: "form__actions form__actions--start" }, this.#theirs, this.#submit)
  node

  // `onChange(summary)` is called when another summary is in use.
  constructor(parts, { onChange }) {
    this.#parts = parts
    this.#onChange = onChange
    this.node = form({
      fields: { content: this.#content, pinned_facts: this.#facts },
      submit: () => this.#save(),
      children: [this.#notice, this.#content.node, this.#facts.node, this.#actions],
    })
  }

  // Shows a summary. Keeps unsaved changes of the user unless `discards` is true; if the summary has another
  // text now, shows both.
  show(summary, { discards = false } = {}) {
    const isKnown = this.#current?.id === summary.id && this.#current.version === summary.version
    if (!discards && isKnown) return
    if (!discards && this.isUnsaved) return this.#showNewer(summary)
    this.#reset(summary)
    this.#fill(valuesOf(summary))
    // What the form returns without a change: a text field changes line breaks.
    this.#seen = this.#values
  }

  setReadOnly(isReadOnly) {
    this.#isReadOnly = isReadOnly
    this.#content.control.readOnly = isReadOnly
    this.#facts.setReadOnly(isReadOnly)
    this.#actions.hidden = isReadOnly
  }

  get isUnsaved() {
    return this.#current !== null && !this.#isReadOnly && Object.keys(this.#changes).length > 0
  }

  // Private

  get #values() {
    return { content: this.#content.control.value.trim(), pinned_facts: this.#facts.values }
  }

  // In a conflict a field is compared with the current one, so that saving one's own always replaces it.
  get #changes() {
    const current = this.#conflicts.map((name) => [name, this.#current[name]])
    return changesOf({ ...this.#seen, ...Object.fromEntries(current) }, this.#values)
  }

  #reset(summary) {
    this.#current = summary
    this.#conflicts = []
    this.#nameControls()
  }

  #fill({ content, pinned_facts: facts }) {
    this.#content.control.value = content
    this.#content.showError("")
    this.#facts.fill(facts)
    this.#facts.setReadOnly(this.#isReadOnly)
  }

  async #save() {
    if (!this.#requireContent()) return
    const changes = this.#changes
    if (Object.keys(changes).length === 0) return this.#settle(this.#current)
    try {
      this.#settle(await this.#parts.summaries.change(this.#current, changes))
      this.#parts.toasts.show(t("saved"))
    } catch (error) {
      const isConflict = error.code === "edit_conflict" && error.current
      const conflicts = isConflict ? conflictsOf(this.#current, error.current, changes) : []
      if (conflicts.length === 0) throw error
      this.#showConflict(error.current, conflicts)
    }
  }

  #settle(summary) {
    this.show(summary, { discards: true })
    this.#onChange(summary)
  }

  #requireContent() {
    const isGiven = this.#content.control.value.trim() !== ""
    this.#content.showError(isGiven ? "" : t("field.needed"))
    if (!isGiven) this.#content.control.focus()
    return isGiven
  }

  #showNewer(summary) {
    const conflicts = conflictsOf(this.#current, summary, this.#changes)
    if (conflicts.length > 0) this.#showConflict(summary, conflicts, { focuses: false })
  }

  // The user's text stays in the form and can be edited.
  #showConflict(current, conflicts, { focuses = true } = {}) {
    this.#conflicts = [...new Set([...this.#conflicts, ...conflicts])]
    this.#current = current
    this.#notice.replaceChildren(
      el("p", { class: "message__conflict-lead" }, t("summary.conflict")),
      el("p", { class: "message__conflict-label" }, t("edit.their_text")),
      ...this.#conflicts.map((name) => theirText(current[name])),
    )
    this.#nameControls()
    if (!focuses) return
    this.#notice.scrollIntoView({ block: "nearest" })
    this.#content.control.focus()
  }

  // Changes of other fields are kept, unsaved.
  #keepTheirs() {
    const current = this.#current
    const merged = withTheirs(this.#seen, current, { values: this.#values, conflicts: this.#conflicts })
    this.show(current, { discards: true })
    this.#fill(merged)
    this.#onChange(current)
    this.#content.control.focus()
  }

  // The buttons stay the same elements, so that the focus stays on them.
  #nameControls() {
    const isConflict = this.#conflicts.length > 0
    const isTextConflict = this.#conflicts.includes("content")
    this.#notice.hidden = !isConflict
    this.#theirs.hidden = !isConflict
    this.#submit.textContent = isConflict ? t("edit.use_mine") : t("save")
    this.#content.node.querySelector("label").textContent = isTextConflict ? t("edit.my_text") : t("summary.content")
  }
}

// A field of the summary in use: a text, or a list of facts.
function theirText(value) {
  if (!Array.isArray(value)) return el("div", { class: "message__conflict-text", dir: "auto" }, value)
  const facts = value.map((it) => el("li", { dir: "auto" }, it))
  const shown = facts.length > 0 ? el("ul", { class: "summary-facts__theirs" }, facts) : t("summary.no_facts")
  return el("div", { class: "message__conflict-text" }, shown)
}
