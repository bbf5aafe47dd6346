// The dialog that forgets memories: shows how many it concerns before it deletes them.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button, submitButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { field, form, select } from "../components/form.js"
import { nameOf } from "./memory_text.js"

// `scopes` are what the user can forget. Resolves with the number of forgotten memories, or undefined if
// dismissed.
export function openForgetDialog(parts, scopes) {
  return openDialog({
    title: t("memory.forget_title"),
    content: (close) => new ForgetForm(parts, scopes, close).node,
  })
}

class ForgetForm {
  #parts
  #scopes
  #close
  #spaceId
  #choice
  #count = el("p", { class: "outcome", role: "status" })
  #effect = el("p", { class: "field__hint" })
  #submit = submitButton(t("memory.forget_submit"), { look: "danger", disabled: true })
  #request = 0
  node

  constructor(parts, scopes, close) {
    this.#parts = parts
    this.#scopes = scopes
    this.#close = close
    this.#spaceId = parts.store.openSpace.id
    const options = scopes.map((scope, index) => [String(index), this.#labelOf(scope)])
    this.#choice = field({ label: t("memory.forget_what"), control: select(options, "0") })
    this.#choice.control.setAttribute("autofocus", "")
    this.#choice.control.addEventListener("change", () => this.#showCount())
    const cancel = button(t("cancel"), { look: "quiet", click: () => close() })
    this.node = form({
      submit: () => this.#forget(),
      children: [
        el("p", { class: "dialog__lead" }, t("memory.forget_hint")),
        this.#choice.node,
        this.#effect,
        this.#count,
        el("div", { class: "form__actions" }, cancel, this.#submit),
      ],
    })
    this.#showCount()
  }

  // Private

  get #scope() {
    return this.#scopes[Number(this.#choice.control.value)]
  }

  #labelOf({ about_membership_id: id, conversation_id: conversationId }) {
    const { store } = this.#parts
    if (conversationId) return t("memory.forget_conversation")
    if (!id) return t("memory.forget_all")
    if (id === store.myMembership?.id) return t("memory.forget_me")
    return t("memory.forget_member", { name: nameOf(store, id) })
  }

  // Returns a note about the second effect: learning is switched off for a forgotten member.
  #effectOf({ about_membership_id: id }) {
    if (!id) return ""
    const { store } = this.#parts
    if (id === store.myMembership?.id) return t("memory.forget_me_effect")
    return t("memory.forget_member_effect", { name: nameOf(store, id) })
  }

  // The button is enabled only with a count that belongs to the choice.
  async #showCount() {
    const request = ++this.#request
    this.#effect.textContent = this.#effectOf(this.#scope)
    this.#submit.disabled = true
    this.#count.textContent = t("memory.forget_counting")
    try {
      const n = await this.#parts.memories.countForgotten(this.#spaceId, this.#scope)
      if (request !== this.#request) return
      this.#count.textContent = n > 0 ? t("memory.forget_count", { n }) : t("memory.forget_none")
      this.#submit.disabled = n === 0
    } catch (error) {
      if (request !== this.#request) return
      this.#count.textContent = ""
      this.#parts.toasts.error(error)
    }
  }

  async #forget() {
    this.#close(await this.#parts.memories.forget(this.#spaceId, this.#scope))
  }
}
