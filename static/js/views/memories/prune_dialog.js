// The dialog that deletes the least valuable memories: shows how many before it deletes them.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { debounce } from "../../base/timing.js"
import { PRUNE_NUMBERS, pruneRules } from "../../models/memories/prune_rules.js"
import { button, submitButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { field, form, input } from "../components/form.js"

const PAUSE_MS = 250

// Resolves with the number of deleted memories, or undefined if dismissed.
export function openPruneDialog(parts) {
  return openDialog({
    title: t("memory.prune_title"),
    content: (close) => new PruneForm(parts, close).node,
  })
}

class PruneForm {
  #parts
  #close
  #spaceId
  #fields
  #count = el("p", { class: "outcome", role: "status" })
  #submit = submitButton(t("memory.prune_submit"), { look: "danger", disabled: true })
  // The rules to which the shown count belongs.
  #rules = null
  #request = 0
  node

  constructor(parts, close) {
    this.#parts = parts
    this.#close = close
    this.#spaceId = parts.store.openSpace.id
    this.#fields = Object.fromEntries(Object.entries(PRUNE_NUMBERS).map(([name, it]) => [name, numberField(name, it)]))
    this.#fields.older_than_days.control.setAttribute("autofocus", "")
    const showCount = debounce(() => this.#showCount(), PAUSE_MS)
    for (const { control } of Object.values(this.#fields))
      control.addEventListener("input", () => {
        this.#forgetCount()
        showCount()
      })
    const cancel = button(t("cancel"), { look: "quiet", click: () => close() })
    this.node = form({
      fields: this.#fields,
      submit: () => this.#prune(),
      children: [
        el("p", { class: "dialog__lead" }, t("memory.prune_hint")),
        ...Object.values(this.#fields).map((it) => it.node),
        this.#count,
        el("div", { class: "form__actions" }, cancel, this.#submit),
      ],
    })
    this.#showCount()
  }

  // Private

  #forgetCount() {
    this.#request += 1
    this.#rules = null
    this.#submit.disabled = true
    this.#count.textContent = t("memory.forget_counting")
  }

  // The button is enabled only with a count that belongs to the fields.
  async #showCount() {
    this.#forgetCount()
    const request = this.#request
    const texts = Object.entries(this.#fields).map(([name, it]) => [name, it.control.value])
    const rules = pruneRules(Object.fromEntries(texts))
    if (!rules) {
      this.#count.textContent = t("memory.prune_invalid")
      return
    }
    try {
      const n = await this.#parts.memories.countPruned(this.#spaceId, rules)
      if (request !== this.#request) return
      this.#count.textContent = n > 0 ? t("memory.prune_count", { n }) : t("memory.prune_none")
      this.#rules = rules
      this.#submit.disabled = n === 0
    } catch (error) {
      if (request !== this.#request) return
      this.#count.textContent = ""
      this.#parts.toasts.error(error)
    }
  }

  async #prune() {
    if (this.#rules) this.#close(await this.#parts.memories.prune(this.#spaceId, this.#rules))
  }
}

function numberField(name, { usual, least, most, step }) {
  const control = input({
    type: "number",
    min: String(least),
    max: most === undefined ? null : String(most),
    step: String(step),
    inputmode: "decimal",
    value: usual === null ? "" : String(usual),
  })
  return field({ label: t(`memory.prune_${name}`), hint: t(`memory.prune_${name}_hint`), control })
}
