// The model of a character: the default one, or its own.
import { t } from "../../base/i18n.js"
import { field } from "../components/form.js"
import { modelNameField, providerSelect } from "../components/model_fields.js"

// `act(change)` runs the change and shows its error.
export function memberModel(parts, member, act) {
  const { providers } = parts.store
  const own = providers.find((it) => it.id === member.llm_provider_id) ?? null
  const nodes = [providerField(parts, member, own, act)]
  if (own) nodes.push(modelField(parts, member, own, act))
  return nodes
}

function providerField(parts, member, own, act) {
  const control = providerSelect(parts.store.providers, own?.id ?? null)
  control.dataset.act = "provider"
  control.addEventListener("change", () =>
    act(() => parts.members.setProvider(member, control.value === "" ? null : Number(control.value))),
  )
  return field({ label: t("member.model"), hint: t("member.model_hint"), control }).node
}

function modelField(parts, member, own, act) {
  const value = member.settings?.model ?? ""
  const { node, control } = modelNameField(parts, { provider: own, value, props: { "data-act": "model" } })
  control.addEventListener("change", () => act(() => parts.members.setModel(member, control.value.trim())))
  return node
}
