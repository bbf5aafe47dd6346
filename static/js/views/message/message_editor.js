// Edits a message in place. Esc cancels. If someone else has changed the message meanwhile, both texts
// are shown and the user chooses one.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button, submitButton } from "../components/button.js"

export default class MessageEditor {
  #view
  #parts
  #onClose
  #field
  #form
  #conflict = null
  // The message as it was when the edit began.
  #base

  constructor(view, parts, onClose) {
    this.#view = view
    this.#parts = parts
    this.#onClose = onClose
    this.#base = view.row.message
  }

  open() {
    this.#field = el("textarea", {
      class: "input input--area",
      "aria-label": t("edit.label"),
      value: this.#base.content,
    })
    const cancel = button(t("cancel"), { look: "small quiet", click: () => this.#close() })
    const save = submitButton(t("save"), { look: "small primary" })
    this.#form = el(
      "form",
      { class: "message__edit" },
      this.#field,
      el("div", { class: "form__actions" }, cancel, save),
    )
    this.#form.addEventListener("submit", (event) => this.#save(event))
    this.#field.addEventListener("keydown", (event) => this.#onKey(event))
    this.#view.body.hidden = true
    this.#view.body.after(this.#form)
    this.#field.focus()
    this.#field.setSelectionRange(this.#base.content.length, this.#base.content.length)
  }

  #onKey(event) {
    // Safari reports 229 for the Enter that ends a composition.
    if (event.isComposing || event.keyCode === 229) return
    if (event.key === "Escape") {
      event.preventDefault()
      this.#close()
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault()
      // With a conflict one of the buttons decides.
      if (!this.#conflict) this.#form.requestSubmit()
    }
  }

  async #save(event) {
    event.preventDefault()
    const content = this.#field.value
    if (content.trim() === "" || content === this.#base.content) return this.#close()
    try {
      await this.#parts.conversation.editMessage(this.#base, content, this.#base.version)
      this.#close()
    } catch (error) {
      // The text stays in the field.
      if (error.code === "edit_conflict" && error.current) return this.#showConflict(error.current)
      this.#parts.toasts.error(error)
      this.#field.focus()
    }
  }

  // `present` is the current message. The user's text stays in the field and can be edited.
  #showConflict(present) {
    this.#base = present
    this.#parts.conversation.applyMessage(present)
    this.#view.body.hidden = true
    const takeTheirs = () => this.#close()
    const theirs = button(t("edit.use_theirs"), { look: "small", click: takeTheirs })
    const mine = submitButton(t("edit.use_mine"), { look: "small primary" })
    const conflict = el(
      "div",
      { class: "message__conflict", role: "alert" },
      el("p", { class: "message__conflict-lead" }, t("edit.conflict")),
      el("p", { class: "message__conflict-label" }, t("edit.their_text")),
      el("div", { class: "message__conflict-text", dir: "auto" }, present.content),
      el("p", { class: "message__conflict-label" }, t("edit.my_text")),
    )
    this.#conflict?.remove()
    this.#conflict = conflict
    this.#form.replaceChildren(
      conflict,
      this.#field,
      el("div", { class: "form__actions" }, theirs, mine),
    )
    this.#field.focus()
  }

  #close() {
    this.#form.remove()
    this.#view.body.hidden = false
    this.#view.node.focus()
    this.#onClose()
  }
}
