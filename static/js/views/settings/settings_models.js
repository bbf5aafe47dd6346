// The connected providers and the default one.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button } from "../components/button.js"
import { confirm } from "../components/dialog.js"
import { connectModel } from "../providers/provider_dialog.js"
import { card } from "./settings_profile.js"

export function modelsCard(parts) {
  const list = el("ul", {})
  const show = () =>
    replace(
      list,
      parts.store.providers.map((provider) => providerItem(parts, provider)),
    )
  const stop = parts.store.on("providers", () => (list.isConnected ? show() : stop()))
  parts.providers.load().catch((error) => parts.toasts.error(error))
  const connect = el(
    "div",
    {},
    button(t("provider.connect"), { look: "primary", icon: "plug", click: () => connectModel(parts) }),
  )
  return card(t("settings.models"), el("p", { class: "soft" }, t("models.lead")), list, connect)
}

function providerItem(parts, provider) {
  const isDemo = provider.kind === "demo"
  const act = (run) => run().catch((error) => parts.toasts.error(error))
  const remove = async () => {
    const words = {
      title: t("models.remove_title", { name: provider.name }),
      text: t("models.remove_text"),
      action: t("models.remove"),
    }
    if (await confirm(words)) await act(() => parts.providers.remove(provider.id))
  }
  const small = (label, click, look = "") =>
    button(label, {
      look: `small ${look}`,
      "aria-label": t("models.act", { action: label, name: provider.name }),
      click,
    })
  return el(
    "li",
    { class: "list__item" },
    el(
      "div",
      { class: "list__main" },
      nameLine(provider),
      el("p", { class: "field__hint" }, modelOf(provider)),
    ),
    !provider.is_default && small(t("models.use"), () => act(() => parts.providers.use(provider.id))),
    !isDemo && small(t("models.change"), () => connectModel(parts, provider), "quiet"),
    !isDemo && small(t("models.remove"), remove, "danger quiet"),
  )
}

function nameLine({ name, is_default: isDefault }) {
  return el(
    "div",
    { class: "field__row" },
    bdi(name, "truncate"),
    isDefault && el("span", { class: "tag" }, t("models.default")),
  )
}

function modelOf({ kind, model }) {
  return kind === "demo" ? t("models.demo") : bdi(model || t("models.no_model"))
}
