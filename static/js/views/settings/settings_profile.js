// Profile: name, password, theme and language.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"
import { submitButton } from "../components/button.js"
import { usernameInput } from "../sign_in/sign_in_page.js"
import { languageOptions } from "../../models/message/reading_languages.js"
import { check, field, form, input, select } from "../components/form.js"
import { keepForm } from "../sign_in/guest.js"
import { languageSwitch } from "../components/language_switch.js"

const THEME = "troupe.theme"
const THEMES = ["system", "light", "dark"]

export function card(title, ...children) {
  return el("section", { class: "settings__card" }, el("h2", { class: "settings__title" }, title), children)
}

// The form with which a guest keeps the account.
export function keepCard(parts) {
  const { router } = parts
  const lead = el("p", { class: "soft" }, t("guest.keep_lead"))
  return card(t("guest.keep"), lead, keepForm(parts, () => router.go(paths.settings("profile"))))
}

export function profileCard({ store, session, toasts }) {
  const name = field({
    label: t("setup.name"),
    hint: t("profile.name_hint"),
    control: input({
      name: "display_name",
      value: store.user.display_name,
      maxlength: "100",
      autocomplete: "name",
    }),
  })
  // A guest has no username to sign in with.
  const username = store.user.is_guest
    ? null
    : field({
        label: t("setup.username"),
        control: usernameInput({ value: store.user.username, maxlength: "32" }),
      })
  const submit = async () => {
    await session.changeProfile({
      displayName: name.control.value.trim(),
      username: username?.control.value.trim(),
    })
    toasts.show(t("saved"))
  }
  const fields = username ? { display_name: name, username } : { display_name: name }
  const nodes = Object.values(fields).map((it) => it.node)
  return card(t("settings.profile"), form({ fields, submit, children: [...nodes, saveButton(t("save"))] }))
}

export function passwordCard({ session, toasts }) {
  const current = field({
    label: t("password.current"),
    control: input({ type: "password", name: "current_password", autocomplete: "current-password" }),
  })
  const next = field({
    label: t("password.new"),
    hint: t("password.hint"),
    control: input({ type: "password", name: "password", autocomplete: "new-password", maxlength: "256" }),
  })
  const revoke = check({
    label: t("password.revoke_keys"),
    hint: t("password.revoke_keys_hint"),
    name: "revoke_api_keys",
  })
  const submit = async () => {
    const n = await session.changePassword({
      currentPassword: current.control.value,
      password: next.control.value,
      revokeApiKeys: revoke.control.checked,
    })
    current.control.value = ""
    next.control.value = ""
    revoke.control.checked = false
    toasts.show(n === 0 ? t("password.changed") : t("password.changed_keys", { n }))
  }
  return card(
    t("password"),
    form({
      fields: { current_password: current, password: next },
      submit,
      children: [current.node, next.node, revoke.node, saveButton(t("password.change"))],
    }),
  )
}

export function appearanceCard({ local }) {
  const choices = el("div", { class: "choices", role: "group", "aria-label": t("appearance.title") })
  const chosen = local.getItem(THEME) ?? "system"
  for (const theme of THEMES) {
    const click = ({ currentTarget }) => {
      setTheme(local, theme)
      for (const button of choices.children)
        button.setAttribute("aria-pressed", String(button === currentTarget))
    }
    choices.append(
      el(
        "button",
        { class: "choice", type: "button", "aria-pressed": String(theme === chosen), on: { click } },
        t(`appearance.${theme}`),
      ),
    )
  }
  return card(t("appearance.title"), choices)
}

export function languageCard({ language, session, store, toasts }) {
  const chosen = store.user.settings?.language ?? null
  const options = [["", t("language.of_page")], ...languageOptions(chosen)]
  const reading = field({
    label: t("language.reading"),
    hint: t("language.reading_hint"),
    control: select(options, chosen ?? ""),
  })
  reading.control.addEventListener("change", async () => {
    try {
      await session.changeReadingLanguage(reading.control.value || null)
      toasts.show(t("saved"))
    } catch (error) {
      toasts.error(error)
    }
  })
  const switches = languageSwitch({ choose: (tag) => language.choose(tag), toasts })
  return card(t("language.title"), switches, reading.node)
}

function setTheme(local, theme) {
  if (theme === "system") {
    local.removeItem(THEME)
    delete document.documentElement.dataset.theme
  } else {
    local.setItem(THEME, theme)
    document.documentElement.dataset.theme = theme
  }
}

function saveButton(label) {
  return el("div", { class: "form__actions form__actions--start" }, submitButton(label))
}
