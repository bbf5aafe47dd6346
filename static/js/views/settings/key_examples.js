// API keys: example programs to copy.
import { copyText } from "../../base/clipboard.js"
import { bdi, el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { NO_KEY, apiExamples } from "../../models/settings/api_examples.js"
import { button } from "../components/button.js"

// The demo model exists on every new server; users may not see the others.
const USUAL_MODEL = "demo"

// Shows one example at a time. `fill({ key, model })` inserts a key and a model into all of them.
export default class KeyExamples {
  node = el("div", { class: "example" })
  #code = el("pre", { class: "example__code", tabindex: "0", translate: "no" })
  #note = el("p", { class: "field__hint" })
  #choices = el("div", { class: "choices", role: "group", "aria-label": t("examples.title") })
  #chosen = "curl"
  #key = null
  #model = USUAL_MODEL

  constructor({ toasts }) {
    const copy = async () =>
      toasts.show((await copyText(this.#code.textContent)) ? t("tools.copied") : t("tools.copy_failed"))
    const look = { look: "small", icon: "copy", class: "example__copy", click: copy }
    this.#choices.append(...this.#examples().map((it) => this.#choice(it)))
    this.node.append(this.#choices, this.#note, this.#code, button(t("tools.copy"), look))
    this.#show()
  }

  fill({ key, model }) {
    this.#key = key
    this.#model = model ?? USUAL_MODEL
    this.#show()
  }

  #examples() {
    return apiExamples({ base: location.origin, key: this.#key, model: this.#model })
  }

  #choice({ id, name }) {
    const click = () => {
      this.#chosen = id
      this.#show()
    }
    return el("button", { class: "choice", type: "button", dataset: { id }, on: { click } }, bdi(name))
  }

  #show() {
    const { name, text } = this.#examples().find(({ id }) => id === this.#chosen)
    this.#code.textContent = text
    this.#code.setAttribute("aria-label", t("examples.of", { name }))
    this.#note.textContent = this.#key
      ? t("examples.with_key")
      : t("examples.without_key", { placeholder: NO_KEY })
    for (const choice of this.#choices.children)
      choice.setAttribute("aria-pressed", String(choice.dataset.id === this.#chosen))
  }
}
