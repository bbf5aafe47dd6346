// The options of a provider for embeddings, in the dialog "Connect a model".
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import {
  EMBEDDING_NUMBERS,
  invalidEmbeddingNumbers,
  readEmbeddingOptions,
  withEmbeddingOptions,
} from "../../models/providers/embedding_options.js"
import { canEmbed } from "../../models/providers/provider_kinds.js"
import { check, field, input } from "../components/form.js"

export default class EmbeddingFields {
  #fields
  #cache
  // Collapsed unless an option is stored.
  node

  constructor(settings) {
    const { embedding_cache: isCached, ...texts } = readEmbeddingOptions(settings)
    this.#fields = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, textField(name, text)]))
    this.#cache = check({
      label: t("provider.embedding_cache"),
      hint: t("provider.embedding_cache_hint"),
      checked: isCached,
      name: "embedding_cache",
    })
    const isOpen = !isCached || Object.values(texts).some((it) => it !== "")
    this.node = el(
      "details",
      { class: "note__more", open: isOpen },
      el("summary", {}, t("provider.embeddings")),
      el(
        "div",
        { class: "form__group" },
        el("p", { class: "field__hint" }, t("provider.embeddings_hint")),
        [...Object.values(this.#fields), this.#cache].map((it) => it.node),
      ),
    )
  }

  // The fields by their names in the API.
  get byName() {
    return Object.fromEntries(Object.entries(this.#fields).map(([name, it]) => [`settings.${name}`, it]))
  }

  // Hides the fields for kinds of providers without embeddings; the stored options are kept.
  showKind(kind) {
    this.node.hidden = !canEmbed({ kind, disabled: false })
  }

  // Returns the settings of the provider with these options.
  applyTo(settings) {
    return this.node.hidden ? settings : withEmbeddingOptions(settings, this.#values)
  }

  // Returns whether all numbers are allowed; shows an error at each one that is not.
  requireNumbers() {
    if (this.node.hidden) return true
    for (const it of Object.values(this.#fields)) it.showError("")
    const invalid = invalidEmbeddingNumbers(this.#values)
    for (const name of invalid)
      this.#fields[name].showError(t("memory_settings.not_allowed", EMBEDDING_NUMBERS[name]))
    if (invalid.length > 0) {
      this.node.open = true
      this.#fields[invalid[0]].control.focus()
    }
    return invalid.length === 0
  }

  // Private

  get #values() {
    const texts = Object.entries(this.#fields).map(([name, it]) => [name, it.control.value])
    return { ...Object.fromEntries(texts), embedding_cache: this.#cache.control.checked }
  }
}

// The type "text" is used because a field of the type "number" returns an empty text for an invalid number.
function textField(name, text) {
  const props = name in EMBEDDING_NUMBERS ? { inputmode: "decimal" } : { maxlength: "200" }
  return field({
    label: t(`provider.${name}`),
    hint: t(`provider.${name}_hint`),
    control: input({ name, value: text, spellcheck: "false", autocomplete: "off", ...props }),
  })
}
