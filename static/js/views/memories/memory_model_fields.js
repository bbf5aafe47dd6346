// The model that makes memories from messages: the default one, or a provider and a model of it.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { modelOf } from "../../models/memories/memory_settings.js"
import { field, input, select } from "../components/form.js"

// `chosen` is the stored model or null. `read()` returns the model of the fields.
export function memoryModelFields({ store, providers }, chosen) {
  const provider = providerField(store.providers, chosen)
  const name = nameField(chosen)
  const list = el("datalist", { id: "memory-models" })
  name.node.append(list)
  const findOwn = () => store.providers.find((it) => String(it.id) === provider.control.value)
  const show = () => {
    const own = findOwn()
    name.node.hidden = !own
    name.control.placeholder = own?.model ?? ""
    replace(list, [])
  }
  provider.control.addEventListener("change", () => {
    name.control.value = ""
    show()
  })
  // Only admins can list the models; others type the name.
  const offer = async () => {
    const own = findOwn()
    if (!own || list.childElementCount > 0) return
    const names = await providers.listModels(own.id).catch(() => [])
    if (findOwn() !== own) return
    replace(
      list,
      names.map((it) => el("option", { value: it })),
    )
  }
  if (store.user?.role === "admin") name.control.addEventListener("focus", offer)
  show()
  return { provider, name, read: () => modelOf(provider.control.value, name.control.value) }
}

function providerField(all, chosen) {
  const own = all.find((it) => it.id === chosen?.provider_id)
  const options = all
    .filter((it) => !it.disabled || it === own)
    .map((it) => [String(it.id), t("member.model_of", { name: it.name, model: it.model })])
  const control = select([["", t("member.model_usual")], ...options], own ? String(own.id) : "")
  return field({ label: t("memory_settings.model"), hint: t("memory_settings.model_hint"), control })
}

function nameField(chosen) {
  const control = input({
    value: chosen?.model ?? "",
    list: "memory-models",
    maxlength: "200",
    spellcheck: "false",
    autocomplete: "off",
  })
  return field({ label: t("member.model_own"), hint: t("member.model_own_hint"), control })
}
