// API keys: create, show once, revoke; with examples.
import { bdi, el, replace } from "../../base/dom.js"
import { copyText } from "../../base/clipboard.js"
import { t } from "../../base/i18n.js"
import { shortTime } from "../../base/time.js"
import { button, submitButton } from "../components/button.js"
import { confirm } from "../components/dialog.js"
import { field, form, input } from "../components/form.js"
import KeyExamples from "./key_examples.js"
import { card } from "./settings_profile.js"

export function keyCards(parts) {
  const examples = new KeyExamples(parts)
  const lead = el("p", { class: "soft" }, t("examples.lead"))
  return [keysCard(parts, examples), card(t("examples.title"), lead, examples.node)]
}

function keysCard(parts, examples) {
  const list = el("ul", {})
  const shown = el("div", { role: "status" })
  const reload = () => showKeys(parts, list, reload)
  const name = field({
    label: t("keys.name"),
    hint: t("keys.name_hint"),
    control: input({ name: "name", maxlength: "100", autocomplete: "off" }),
  })
  const submit = async () => {
    if (name.control.value.trim() === "") return name.showError(t("field.needed"))
    const { key } = await parts.session.createApiKey(name.control.value.trim())
    showSecret(parts, shown, key)
    name.control.value = ""
    reload()
    // If the request fails, the examples use the default model.
    examples.fill({ key, model: await parts.session.firstModelFor(key).catch(() => null) })
  }
  const make = el("div", { class: "form__actions form__actions--start" }, submitButton(t("keys.create")))
  reload()
  return card(
    t("settings.keys"),
    el("p", { class: "soft" }, t("keys.lead")),
    el("a", { class: "settings__aside", href: "/docs" }, t("keys.docs")),
    form({ fields: { name }, submit, children: [name.node, make] }),
    shown,
    list,
  )
}

function showSecret({ toasts }, shown, key) {
  const copy = async () => toasts.show((await copyText(key)) ? t("tools.copied") : t("tools.copy_failed"))
  replace(
    shown,
    el("p", { class: "field__label" }, t("keys.once")),
    el("p", { class: "secret" }, key),
    button(t("tools.copy"), { look: "small", icon: "copy", click: copy }),
  )
}

async function showKeys(parts, list, reload) {
  try {
    const keys = (await parts.session.apiKeys()).filter((key) => !key.revoked_at)
    if (keys.length === 0) replace(list, el("li", { class: "panel__empty" }, t("keys.empty")))
    else
      replace(
        list,
        keys.map((key) => keyItem(parts, key, reload)),
      )
  } catch (error) {
    parts.toasts.error(error)
  }
}

function keyItem(parts, key, reload) {
  const used = key.last_used_at
    ? t("keys.used", { at: shortTime(Date.parse(key.last_used_at)) })
    : t("keys.unused")
  const click = async () => {
    if (
      !(await confirm({
        title: t("keys.revoke_title", { name: key.name }),
        text: t("keys.revoke_text"),
        action: t("keys.revoke"),
      }))
    )
      return
    await parts.session.revokeApiKey(key.id).catch((error) => parts.toasts.error(error))
    reload()
  }
  return el(
    "li",
    { class: "list__item" },
    el(
      "div",
      { class: "list__main" },
      bdi(key.name),
      el("p", { class: "field__hint" }, key.prefix ? `${key.prefix}… · ${used}` : used),
    ),
    button(t("keys.revoke"), {
      look: "small danger",
      "aria-label": t("keys.revoke_named", { name: key.name }),
      click,
    }),
  )
}
