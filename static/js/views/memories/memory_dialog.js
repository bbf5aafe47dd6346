// The dialogs that add and edit a memory. If another member has changed the text meanwhile, both texts
// are shown and the user chooses one.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { changesOf, valuesOf } from "../../models/memories/memory.js"
import { button, submitButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { form } from "../components/form.js"
import { memoryFields } from "./memory_fields.js"

// Resolves with the new memory, or undefined if dismissed.
export function openNewMemoryDialog(parts) {
  const spaceId = parts.store.openSpace.id
  const fields = memoryFields(parts, null)
  const kept = JSON.stringify(fields.values())
  return openDialog({
    title: t("memory.add"),
    isUnsaved: () => JSON.stringify(fields.values()) !== kept,
    content: (close) => {
      const submit = async () => {
        if (fields.requireContent()) close(await parts.memories.create(spaceId, fields.values()))
      }
      const cancel = button(t("cancel"), { look: "quiet", click: () => close() })
      const actions = el("div", { class: "form__actions" }, cancel, submitButton(t("add")))
      return form({ fields: fields.byName, submit, children: [...fields.nodes, actions] })
    },
  })
}

// Resolves with the changed memory, or undefined if dismissed.
export async function openEditMemoryDialog(parts, memory) {
  const editor = new MemoryEditor(parts, memory)
  const stop = parts.store.on("memories", (event) => editor.apply(event))
  const changed = await openDialog({
    title: t("memory.edit"),
    isUnsaved: () => editor.isUnsaved,
    content: (close) => editor.open(close),
  })
  stop()
  return changed
}

class MemoryEditor {
  #parts
  // The memory that the user has seen, and the newest one that is known.
  #seen
  #current
  #fields
  #conflict = el("div", { class: "message__conflict", role: "alert", hidden: true })
  #actions = el("div", { class: "form__actions" })
  #close

  constructor(parts, memory) {
    this.#parts = parts
    this.#seen = memory
    this.#current = memory
    this.#fields = memoryFields(parts, memory)
  }

  open(close) {
    this.#close = close
    const cancel = button(t("cancel"), { look: "quiet", click: () => close() })
    this.#actions.append(cancel, submitButton(t("save")))
    return form({
      fields: this.#fields.byName,
      submit: () => this.#save(),
      children: [this.#conflict, ...this.#fields.nodes, this.#actions],
    })
  }

  get isUnsaved() {
    return Object.keys(this.#changes).length > 0
  }

  // Applies an event of the socket: the user's text stays, and a newer text is shown, too.
  apply(event) {
    if (event.type === "memory_deleted" && event.memory_id === this.#seen.id) return this.#showDeleted()
    if (event.type !== "memory_updated" || event.memory.id !== this.#seen.id) return
    const { memory } = event
    if (memory.version <= this.#current.version) return
    const { content } = this.#fields.values()
    // The event of the user's own change may arrive before the response.
    if ([this.#current.content, content].includes(memory.content)) this.#current = memory
    else this.#showConflict(memory, { focuses: false })
  }

  // Private

  // In a conflict the text is compared with the current one, so that saving one's own always replaces it.
  get #changes() {
    const base = { ...valuesOf(this.#seen), content: this.#current.content }
    return changesOf(base, this.#fields.values())
  }

  async #save() {
    if (!this.#fields.requireContent()) return
    const changes = this.#changes
    if (Object.keys(changes).length === 0) return this.#close()
    try {
      this.#close(await this.#parts.memories.change(this.#current, changes))
    } catch (error) {
      if (error.code !== "edit_conflict" || !error.current) throw error
      this.#showConflict(error.current)
    }
  }

  #showDeleted() {
    this.#conflict.replaceChildren(el("p", { class: "message__conflict-lead" }, t("memory.was_deleted")))
    this.#conflict.hidden = false
  }

  // The user's text stays in the field and can be edited.
  #showConflict(current, { focuses = true } = {}) {
    this.#current = current
    this.#conflict.replaceChildren(
      el("p", { class: "message__conflict-lead" }, t("memory.conflict")),
      el("p", { class: "message__conflict-label" }, t("edit.their_text")),
      el("div", { class: "message__conflict-text", dir: "auto" }, current.content),
    )
    this.#conflict.hidden = false
    this.#fields.nameContent(t("edit.my_text"))
    const theirs = button(t("edit.use_theirs"), { click: () => this.#keepTheirs() })
    this.#actions.replaceChildren(theirs, submitButton(t("edit.use_mine")))
    if (!focuses) return
    this.#conflict.scrollIntoView({ block: "nearest" })
    this.#fields.byName.content.control.focus()
  }

  // Changes of other fields are kept.
  async #keepTheirs() {
    const { content, ...others } = this.#changes
    if (Object.keys(others).length === 0) return this.#close(this.#current)
    try {
      this.#close(await this.#parts.memories.change(this.#current, others))
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }
}
