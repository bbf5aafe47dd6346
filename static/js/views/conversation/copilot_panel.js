// The panel above the composer with suggested replies and the copilot.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { describeCopilot } from "../../models/conversation/copilot.js"
import { may } from "../../models/members/rights.js"
import { button } from "../components/button.js"
import { explainCandidateError } from "../components/error_messages.js"
import { field, input, select } from "../components/form.js"

const MOST_SUGGESTIONS = 4
const MOST_STEPS = 10
const USUAL_SUGGESTIONS = 3
const USUAL_STEPS = 3
const LONGEST_INSTRUCTION = 2000

export default class CopilotPanel {
  node = el("section", { class: "copilot-panel", id: "copilot-panel", "aria-label": t("copilot_panel.label"), hidden: true })
  #parts
  #onChoose
  #instruction = null
  #count = null
  #steps = null
  #suggest = null
  #list = null
  #elsewhereNote = null

  // `onChoose(text)` is called with the selected reply.
  constructor(parts, { onChoose }) {
    this.#parts = parts
    this.#onChoose = onChoose
  }

  get isOpen() {
    return !this.node.hidden
  }

  open() {
    this.#build()
    this.node.hidden = false
    this.update()
    this.node.querySelector("input, select, button").focus()
  }

  // Requests suggestions that follow an instruction. Throws if the request is refused.
  async suggest(instruction) {
    this.#instruction.value = instruction
    await this.#parts.copilot.suggest(Number(this.#count.value), instruction)
  }

  close() {
    this.node.hidden = true
    if (!this.#parts.store.candidates?.isEmpty) this.#parts.copilot.clearCandidates()
  }

  update() {
    if (!this.isOpen) return
    const { candidates, openConversation, myMembership: membership } = this.#parts.store
    this.#list.hidden = candidates.isEmpty
    this.#list.setAttribute("aria-busy", String(candidates.isPending))
    const made = candidates.entries.map((entry, at) => this.#candidate(entry, at))
    const focused = [...this.#list.children].findIndex((node) => node.contains(document.activeElement))
    replace(this.#list, made)
    if (focused >= 0) this.#list.children[focused]?.querySelector("button")?.focus()
    const { conversationId, queue } = openConversation
    const copilot = describeCopilot({ membership, conversationId, state: queue.state })
    this.#elsewhereNote.hidden = copilot.status !== "elsewhere"
  }

  // Private

  #build() {
    this.#list = el("ul", { class: "copilot-panel__list", "aria-label": t("copilot_panel.suggestions"), "aria-live": "polite", hidden: true })
    this.#elsewhereNote = el("p", { class: "copilot-panel__note", hidden: true }, t("copilot.elsewhere"))
    const maySuggest = may(this.#parts.store.openSpace?.my_role, "suggest")
    replace(this.node, maySuggest && this.#candidateForm(), this.#list, this.#copilotForm())
  }

  #candidateForm() {
    this.#instruction = input({
      maxlength: LONGEST_INSTRUCTION,
      placeholder: t("copilot_panel.instruction_hint"),
      autocomplete: "off",
      enterkeyhint: "go",
      on: { keydown: (event) => this.#onKey(event) },
    })
    this.#count = select(numbers(MOST_SUGGESTIONS), String(USUAL_SUGGESTIONS))
    this.#suggest = button(t("copilot_panel.suggest"), { icon: "spark", click: () => this.#requestCandidates() })
    return el(
      "div",
      { class: "copilot-panel__row" },
      field({ label: t("copilot_panel.instruction"), control: this.#instruction }).node,
      field({ label: t("copilot_panel.count"), control: this.#count }).node,
      this.#suggest,
    )
  }

  #copilotForm() {
    this.#steps = select(numbers(MOST_STEPS), String(USUAL_STEPS))
    return el(
      "div",
      { class: "copilot-panel__row copilot-panel__row--copilot" },
      el("p", { class: "copilot-panel__note" }, t("copilot.about")),
      this.#elsewhereNote,
      field({ label: t("copilot.steps"), control: this.#steps }).node,
      button(t("copilot.turn_on"), { icon: "loop", click: (event) => this.#turnOn(event) }),
    )
  }

  #candidate({ text, error }, at) {
    if (text !== null) {
      const click = () => this.#onChoose(text)
      const label = t("copilot_panel.use", { n: at + 1, text })
      const choose = el("button", { class: "suggestion", type: "button", "aria-label": label, on: { click } }, text)
      return el("li", {}, choose)
    }
    const why = error && explainCandidateError(error)
    const look = error ? "suggestion suggestion--failed" : "suggestion suggestion--waiting"
    return el("li", { class: look }, why ?? t("copilot_panel.waiting"))
  }

  // Enter requests suggestions and does not send the message.
  #onKey(event) {
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return
    event.preventDefault()
    this.#requestCandidates()
  }

  async #requestCandidates() {
    const instruction = this.#instruction.value.trim()
    await this.#parts.copilot
      .suggest(Number(this.#count.value), instruction)
      .catch((error) => this.#parts.toasts.error(error))
  }

  async #turnOn({ currentTarget }) {
    currentTarget.disabled = true
    await this.#parts.copilot
      .turnOn(Number(this.#steps.value))
      .catch((error) => this.#parts.toasts.error(error))
    currentTarget.disabled = false
  }
}

function numbers(most) {
  return Array.from({ length: most }, (_, at) => [String(at + 1), String(at + 1)])
}
