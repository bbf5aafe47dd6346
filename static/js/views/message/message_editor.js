// Edits a message in place. Ctrl+Enter saves, on a keyboard Enter too; Esc and Back ask before they discard
// a changed text, which is also kept over a reload. If someone else has changed the message meanwhile, a
// dialog shows both texts.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { mergeTexts } from "../../models/message/text_merge.js"
import { button, submitButton } from "../components/button.js"
import { confirmDiscard, openLayer } from "../components/dialog.js"
import { UNDO_MS } from "../components/toast.js"
import { openEditConflict } from "../on_demand.js"

const TOUCH = matchMedia("(hover: none) and (pointer: coarse)")

export default class MessageEditor {
  #view
  #parts
  #callbacks
  #conversationId
  #field
  #form
  #save
  #hint = el("p", { class: "message__edit-hint", role: "status", hidden: true })
  // The message as it was when the edit began, and an unsaved text of an earlier visit.
  #base
  #draft
  #release = null

  // `onClose()` is called when the editor is closed, `onReopen(draft)` when a discarded text is wanted
  // again. `draft` is an unsaved text of this message, or null.
  constructor(view, parts, { draft = null, onClose, onReopen }) {
    this.#view = view
    this.#parts = parts
    this.#callbacks = { onClose, onReopen }
    this.#base = view.row.message
    this.#conversationId = this.#base.conversation_id
    this.#draft = draft
  }

  open() {
    const draft = this.#draft
    if (draft) this.#base = { ...this.#base, version: draft.version, content: draft.base }
    this.#field = el("textarea", {
      class: "input input--area message__edit-field",
      "aria-label": t("edit.label"),
      enterkeyhint: TOUCH.matches ? "enter" : "done",
      value: draft?.text ?? this.#base.content,
    })
    const cancel = button(t("cancel"), { look: "small quiet", click: () => this.#dismiss() })
    this.#save = submitButton(t("save"), { look: "small primary" })
    const actions = el("div", { class: "form__actions" }, cancel, this.#save)
    this.#form = el("form", { class: "message__edit" }, this.#field, this.#hint, actions)
    this.#form.addEventListener("submit", (event) => this.#submit(event))
    this.#field.addEventListener("keydown", (event) => this.#onKey(event))
    this.#field.addEventListener("input", () => this.#onInput())
    const { height } = this.#view.body.getBoundingClientRect()
    this.#view.body.hidden = true
    this.#view.body.after(this.#form)
    this.#field.style.minBlockSize = `${Math.round(height)}px`
    this.#resize()
    this.#field.focus({ preventScroll: true })
    this.#field.setSelectionRange(this.#field.value.length, this.#field.value.length)
    this.#form.scrollIntoView({ block: "nearest" })
    this.#release = openLayer(() => this.#dismiss())
  }

  // Whether its message is still shown.
  get isShown() {
    return this.#form.isConnected
  }

  // Removes the editor because its message is no longer shown. The draft stays.
  abandon() {
    this.#release?.()
    this.#form.remove()
    this.#view.body.hidden = false
  }

  // Private

  get #isChanged() {
    return this.#field.value !== this.#base.content
  }

  #onKey(event) {
    // Safari reports 229 for the Enter that ends a composition.
    if (event.isComposing || event.keyCode === 229) return
    if (event.key === "Escape") {
      event.preventDefault()
      this.#dismiss()
    }
    const isSave = event.ctrlKey || event.metaKey || (!event.shiftKey && !TOUCH.matches)
    if (event.key === "Enter" && isSave) {
      event.preventDefault()
      this.#form.requestSubmit()
    }
  }

  #onInput() {
    const { editDrafts } = this.#parts
    const { id: messageId, version, content: base } = this.#base
    const draft = { messageId, version, base, text: this.#field.value }
    if (this.#isChanged) editDrafts.write(this.#conversationId, draft)
    else editDrafts.clear(this.#conversationId, messageId)
    this.#resize()
  }

  // For browsers without `field-sizing`.
  #resize() {
    if (CSS.supports("field-sizing", "content")) return
    this.#field.style.height = "auto"
    this.#field.style.height = `${this.#field.scrollHeight}px`
  }

  // Closes the editor; a changed text only after a question. Returns whether it closed at once.
  #dismiss() {
    if (!this.#isChanged) {
      this.#close()
      return true
    }
    confirmDiscard().then((isSure) => (isSure ? this.#close() : this.#field.focus()))
    return false
  }

  #submit(event) {
    event.preventDefault()
    if (!this.#isChanged) return this.#close()
    return this.#saveOver(this.#base, this.#field.value)
  }

  // Saves a text over this state of the message. `replaced` is the text of another person that the user
  // has decided to replace.
  async #saveOver(base, content, replaced = null) {
    if (this.#save.disabled) return
    this.#save.disabled = true
    try {
      const saved = await this.#parts.conversation.editMessage(base, content, base.version)
      this.#close()
      if (replaced !== null) this.#offerTheirs(saved, replaced)
    } catch (error) {
      this.#save.disabled = false
      // The text stays in the field.
      if (error.code === "edit_conflict" && error.current) return this.#resolve(error.current, content)
      this.#parts.toasts.error(error)
      this.#field.focus()
    }
  }

  // Asks which text to keep. `present` is the current message.
  async #resolve(present, mine) {
    this.#parts.conversation.applyMessage(present)
    const choice = await openEditConflict(this.#parts, { present, mine })
    if (choice === "mine") return this.#saveOver(present, mine, present.content)
    if (choice === "theirs") {
      this.#close()
      return this.#offerMine(present, mine)
    }
    if (choice === "merge") this.#merge(present, mine)
    this.#field.focus()
  }

  // Puts both texts into the field, which the user edits and saves.
  #merge(present, mine) {
    const { text, isClean } = mergeTexts(this.#base.content, mine, present.content)
    this.#base = present
    this.#field.value = text
    this.#hint.textContent = isClean ? t("edit.merged") : t("edit.merged_twice")
    this.#hint.hidden = false
    this.#onInput()
  }

  #offerTheirs(saved, replaced) {
    const { conversation, toasts } = this.#parts
    const run = () => conversation.editMessage(saved, replaced, saved.version).catch((error) => toasts.error(error))
    toasts.show(t("edit.their_text_replaced"), { action: { label: t("undo"), run }, staysMs: UNDO_MS })
  }

  #offerMine({ id: messageId, version, content: base }, text) {
    const run = () => this.#callbacks.onReopen({ messageId, version, base, text })
    this.#parts.toasts.show(t("edit.my_text_discarded"), { action: { label: t("undo"), run }, staysMs: UNDO_MS })
  }

  #close() {
    this.#parts.editDrafts.clear(this.#conversationId, this.#base.id)
    this.abandon()
    this.#view.node.focus({ preventScroll: true })
    this.#callbacks.onClose()
  }
}
