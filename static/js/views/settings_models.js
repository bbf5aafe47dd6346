// Settings, models: which ones are connected, which one speaks.
import { bdi, el, icon, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { confirm } from "./dialog.js"
import { connectModel } from "./provider_dialog.js"
import { card } from "./settings_profile.js"

export function modelsCard(parts) {
  const list = el("ul", {})
  const show = () => replace(list, parts.store.providers.map((provider) => providerItem(parts, provider)))
  const stop = parts.store.on("providers", () => (list.isConnected ? show() : stop()))
  parts.models.load().catch((error) => parts.toasts.error(error))
  const connect = el("div", {}, el("button", { class: "button button--primary", type: "button", on: { click: () => connectModel(parts) } }, icon("plug"), t("provider.connect")))
  return card(t("settings.models"), el("p", { class: "soft" }, t("models.lead")), list, connect)
}

function providerItem(parts, provider) {
  const isDemo = provider.kind === "demo"
  const act = async (run) => { await run().catch((error) => parts.toasts.error(error)) }
  const remove = async () => {
    if (await confirm({ title: t("models.remove_title", { name: provider.name }), text: t("models.remove_text"), action: t("models.remove") })) await act(() => parts.models.remove(provider.id))
  }
  const small = (label, click, className = "") => el("button", { class: `button button--small ${className}`, type: "button", "aria-label": `${label}: ${provider.name}`, on: { click } }, label)
  return el(
    "li",
    { class: "list__item" },
    el("div", { class: "list__main" }, el("div", { class: "field__row" }, bdi(provider.name, "truncate"), provider.is_default && el("span", { class: "tag" }, t("models.default"))), el("p", { class: "field__hint" }, isDemo ? t("models.demo") : bdi(provider.model || t("models.no_model")))),
    !provider.is_default && small(t("models.use"), () => act(() => parts.models.use(provider.id))),
    !isDemo && small(t("models.change"), () => connectModel(parts, provider), "button--quiet"),
    !isDemo && small(t("models.remove"), remove, "button--danger button--quiet"),
  )
}
