// The fields with which a model is chosen: its provider, and another model of this provider.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { field, input, select } from "./form.js"

let n = 0

// A select of the connected providers; its empty value is the default model. A disabled provider is
// listed only if it is the chosen one.
export function providerSelect(providers, chosenId) {
  const options = providers
    .filter((it) => !it.disabled || it.id === chosenId)
    .map((it) => [String(it.id), t("member.model_of", { name: it.name, model: it.model })])
  return select([["", t("member.model_usual")], ...options], chosenId === null ? "" : String(chosenId))
}

// The name of another model of `provider`; empty for the provider's own one. `props` are attributes.
export function modelNameField({ providers, store }, { provider, value, props = {} }) {
  const list = el("datalist", { id: `models-${n++}` })
  const control = input({
    value,
    placeholder: provider.model,
    list: list.id,
    maxlength: "200",
    spellcheck: "false",
    autocomplete: "off",
    ...props,
  })
  // Only admins can list the models; others type the name.
  const offer = async () => {
    const names = await providers.listModels(provider.id).catch(() => [])
    replace(
      list,
      names.map((name) => el("option", { value: name })),
    )
  }
  if (store.user?.role === "admin") control.addEventListener("focus", offer, { once: true })
  const shown = field({ label: t("member.model_own"), hint: t("member.model_own_hint"), control })
  shown.node.append(list)
  return shown
}
