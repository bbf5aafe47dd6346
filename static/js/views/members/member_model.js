// The model of a character: the default one, or its own.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { field, input, select } from "../components/form.js"

// `act(change)` runs the change and shows its error.
export function memberModel(parts, member, act) {
  const { providers } = parts.store
  const own = providers.find((it) => it.id === member.llm_provider_id) ?? null
  const nodes = [providerField(parts, member, providers, own, act)]
  if (own) nodes.push(modelField(parts, member, own, act))
  return nodes
}

function providerField(parts, member, providers, own, act) {
  const options = providers
    .filter((it) => !it.disabled || it.id === own?.id)
    .map((it) => [String(it.id), t("member.model_of", { name: it.name, model: it.model })])
  const control = select([["", t("member.model_usual")], ...options], own ? String(own.id) : "")
  control.dataset.act = "provider"
  control.addEventListener("change", () =>
    act(() => parts.members.setProvider(member, control.value === "" ? null : Number(control.value))),
  )
  return field({ label: t("member.model"), hint: t("member.model_hint"), control }).node
}

function modelField(parts, member, own, act) {
  const list = el("datalist", { id: `models-of-${member.id}` })
  const control = input({
    value: member.settings?.model ?? "",
    placeholder: own.model,
    list: list.id,
    maxlength: "200",
    spellcheck: "false",
    autocomplete: "off",
    "data-act": "model",
  })
  control.addEventListener("change", () => act(() => parts.members.setModel(member, control.value.trim())))
  // Only admins can list the models; others type the name.
  const offer = async () => {
    const names = await parts.providers.listModels(own.id).catch(() => [])
    replace(
      list,
      names.map((name) => el("option", { value: name })),
    )
  }
  if (parts.store.user?.role === "admin") control.addEventListener("focus", offer, { once: true })
  const shown = field({ label: t("member.model_own"), hint: t("member.model_own_hint"), control })
  shown.node.append(list)
  return shown.node
}
