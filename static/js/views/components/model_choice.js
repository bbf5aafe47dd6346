// The choice of a model for the memory of a space: the default one, or another one.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { field } from "./form.js"
import { modelNameField, providerSelect } from "./model_fields.js"

// `chosen` is `{ provider_id, model }`, or null for the default model. `value()` returns the same; `hint`
// says what the model does.
export function modelChoice(parts, { chosen, hint }) {
  const providers = knownProviders(parts.store.providers, chosen)
  const control = providerSelect(providers, chosen?.provider_id ?? null)
  const provider = field({ label: t("member.model"), hint, control })
  const place = el("div", {})
  let name = null
  const showName = () => {
    const own = providers.find((it) => String(it.id) === control.value)
    const isChosen = own && own.id === chosen?.provider_id && chosen.model && own.model !== chosen.model
    name = own ? modelNameField(parts, { provider: own, value: isChosen ? chosen.model : "" }) : null
    replace(place, name?.node)
    place.hidden = name === null
  }
  control.addEventListener("change", showName)
  showName()
  return {
    nodes: [provider.node, place],
    field: provider,
    value: () => {
      const own = providers.find((it) => String(it.id) === control.value)
      return own ? { provider_id: own.id, model: name.control.value.trim() || own.model } : null
    },
  }
}

// Keeps a chosen provider that this user cannot see.
function knownProviders(providers, chosen) {
  if (!chosen || providers.some((it) => it.id === chosen.provider_id)) return providers
  const { provider_id: id, model } = chosen
  return [...providers, { id, name: t("member.model_unknown"), model, disabled: false }]
}
