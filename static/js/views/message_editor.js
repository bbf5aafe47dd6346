// Changes the text of a message in its place. Esc gives it back as it was.
import { el } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { button, submitButton } from "./buttons.js"

export default class MessageEditor {
  #view
  #parts
  #onClose
  #field
  #form

  constructor(view, parts, onClose) {
    this.#view = view
    this.#parts = parts
    this.#onClose = onClose
  }

  open() {
    const { message } = this.#view.row
    this.#field = el("textarea", {
      class: "input input--area",
      "aria-label": t("edit.label"),
      value: message.content,
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
    this.#field.setSelectionRange(message.content.length, message.content.length)
  }

  #onKey(event) {
    // 229 is what Safari says for the Enter that ends a composition.
    if (event.isComposing || event.keyCode === 229) return
    if (event.key === "Escape") {
      event.preventDefault()
      this.#close()
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault()
      this.#form.requestSubmit()
    }
  }

  async #save(event) {
    event.preventDefault()
    const content = this.#field.value
    const { message } = this.#view.row
    if (content.trim() === "" || content === message.content) return this.#close()
    try {
      await this.#parts.room.editMessage(message, content)
      this.#close()
    } catch (error) {
      // The text stays in the field: nothing that was written is lost.
      this.#parts.toasts.error(error)
      this.#field.focus()
    }
  }

  #close() {
    this.#form.remove()
    this.#view.body.hidden = false
    this.#view.node.focus()
    this.#onClose()
  }
}
