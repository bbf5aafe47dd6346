// One's own account: profile, API keys; for an admin the models. `/settings/{part}`.
import { el } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { paths } from "../router.js"
import { railButton } from "./hollow.js"
import { appearanceCard, languageCard, passwordCard, profileCard } from "./settings_profile.js"
import { keysCard } from "./settings_keys.js"
import { modelsCard } from "./settings_models.js"

const PARTS = {
  profile: (parts) => [profileCard(parts), passwordCard(parts), appearanceCard(parts), languageCard(parts)],
  keys: (parts) => [keysCard(parts)],
  models: (parts) => [modelsCard(parts)],
}

export default class SettingsView {
  #parts
  #part

  constructor(parts, part) {
    this.#parts = parts
    const isAllowed = part in PARTS && (part !== "models" || parts.store.user.role === "admin")
    this.#part = isAllowed ? part : "profile"
  }

  mount(stage) {
    const { shell } = this.#parts
    const head = el(
      "header",
      { class: "stage__head" },
      railButton(() => shell.openDrawer("rail")),
      el("div", { class: "stage__titles" }, el("h1", { class: "stage__title" }, t("settings.title"))),
    )
    const inner = el("div", { class: "settings__inner" }, this.#nav())
    stage.append(head, el("div", { class: "settings" }, inner))
    for (const card of PARTS[this.#part](this.#parts)) inner.append(card)
    this.#parts.title.set(t(`settings.${this.#part}`))
  }

  unmount() {}

  #nav() {
    const names = Object.keys(PARTS).filter(
      (name) => name !== "models" || this.#parts.store.user.role === "admin",
    )
    return el(
      "nav",
      { class: "settings__nav", "aria-label": t("settings.title") },
      names.map((name) =>
        el(
          "a",
          {
            class: "settings__link",
            href: paths.settings(name),
            "aria-current": name === this.#part ? "page" : null,
          },
          t(`settings.${name}`),
        ),
      ),
    )
  }
}
