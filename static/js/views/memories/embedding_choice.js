// The embedding model of a space's memories: the choice of a provider and a model, a test, how many
// memories are embedded, and how many tokens the memory has used.
import { el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { canEmbed } from "../../models/providers/provider_kinds.js"
import { button } from "../components/button.js"
import { explain } from "../components/error_messages.js"
import { field, input, select } from "../components/form.js"
import { embeddingTexts, tokensText } from "./memory_state.js"

export default class EmbeddingChoice {
  #parts
  #spaceId
  #provider
  #model
  #test
  #outcome = el("div", { role: "status" })
  #state = el("p", { class: "field__hint", "data-part": "embedding-state" })
  nodes

  // `chosen` is the setting of the space: `{ provider_id, model }` or null.
  constructor(parts, chosen, { disabled = false } = {}) {
    this.#parts = parts
    this.#spaceId = parts.store.openSpace.id
    this.#provider = this.#providerField(chosen)
    this.#model = field({
      label: t("memory_settings.embedding_model"),
      hint: t("memory_settings.embedding_model_hint"),
      control: input({ value: chosen?.model ?? "", maxlength: "200", spellcheck: "false", autocomplete: "off" }),
    })
    this.#test = button(t("memory_settings.embedding_test"), { look: "small", click: () => this.#runTest() })
    this.#provider.control.addEventListener("change", () => this.#showProvider())
    this.#showProvider()
    const actions = disabled ? null : this.#test
    this.nodes = [this.#provider.node, this.#model.node, actions, this.#outcome, this.#state].filter(Boolean)
    this.#showState()
    const stop = parts.store.on("memories", (event) => (this.#state.isConnected ? this.#apply(event) : stop()))
  }

  get fields() {
    return {
      "settings.memory.embedding.provider_id": this.#provider,
      "settings.memory.embedding.model": this.#model,
    }
  }

  // The setting, or null without a provider.
  get value() {
    const id = this.#provider.control.value
    return id === "" ? null : { provider_id: Number(id), model: this.#model.control.value.trim() }
  }

  // Returns whether a chosen provider has a model; shows an error if not.
  requireModel() {
    const isGiven = this.value === null || this.value.model !== ""
    this.#model.showError(isGiven ? "" : t("field.needed"))
    if (!isGiven) this.#model.control.focus()
    return isGiven
  }

  // Private

  // Keeps a provider that was removed, so that saving other settings does not change the choice.
  #providerField(chosen) {
    const { providers } = this.#parts.store
    const usable = providers.filter((it) => canEmbed(it) || it.id === chosen?.provider_id)
    const options = usable.map((it) => [String(it.id), it.name])
    if (chosen && !usable.some((it) => it.id === chosen.provider_id))
      options.push([String(chosen.provider_id), t("memory_settings.embedding_removed")])
    return field({
      label: t("memory_settings.embedding"),
      hint: t("memory_settings.embedding_hint"),
      control: select(
        [["", t("memory_settings.embedding_usual")], ...options],
        chosen ? String(chosen.provider_id) : "",
      ),
    })
  }

  #showProvider() {
    const isChosen = this.#provider.control.value !== ""
    this.#model.node.hidden = !isChosen
    this.#test.hidden = !isChosen
    replace(this.#outcome)
  }

  async #runTest() {
    if (!this.requireModel()) return
    this.#test.disabled = true
    this.#showOutcome("wait", t("provider.testing"))
    try {
      const { dimensions } = await this.#parts.memories.testEmbedding(this.#spaceId, this.value)
      this.#showOutcome("good", t("memory_settings.embedding_works", { n: dimensions }))
    } catch (error) {
      this.#showOutcome("bad", explain(error))
    }
    this.#test.disabled = false
  }

  #showOutcome(kind, text) {
    const name = { good: "check", bad: "alert", wait: "retry" }[kind]
    replace(this.#outcome, el("p", { class: `outcome outcome--${kind}` }, icon(name), el("span", {}, text)))
  }

  #apply({ type, space_id: id }) {
    if (type === "memory_state" && id === this.#spaceId) this.#showState()
  }

  // An error is ignored: the settings can be changed without the state.
  async #showState() {
    const state = await this.#parts.memories.state(this.#spaceId).catch(() => null)
    if (!state) return
    const texts = [...embeddingTexts(state.embedding), tokensText(state.tokens_used)]
    this.#state.textContent = texts.filter(Boolean).join(" ")
  }
}
