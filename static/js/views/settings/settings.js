// The settings page `/settings/{part}`: profile, API keys, personas, presets; for admins the models.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"
import { sidebarButton } from "../components/empty_state.js"
import { appearanceCard, keepCard, languageCard, passwordCard, profileCard } from "./settings_profile.js"
import { keyCards } from "./settings_keys.js"
import { modelsCard } from "./settings_models.js"
import { personasCard } from "./settings_personas.js"
import { presetsCard } from "./settings_presets.js"
import { sessionsCard } from "./settings_sessions.js"

const PARTS = {
  profile: { isFor: () => true, cards: (parts) => profileCards(parts) },
  keys: { isFor: (user) => !user.is_guest, cards: (parts) => keyCards(parts) },
  personas: { isFor: () => true, cards: (parts) => [personasCard(parts)] },
  presets: { isFor: () => true, cards: (parts) => [presetsCard(parts)] },
  models: { isFor: (user) => user.role === "admin", cards: (parts) => [modelsCard(parts)] },
}

function profileCards(parts) {
  const own = parts.store.user.is_guest
    ? [keepCard(parts), profileCard(parts)]
    : [profileCard(parts), passwordCard(parts), sessionsCard(parts)]
  return [...own, appearanceCard(parts), languageCard(parts)]
}

export default class SettingsView {
  #parts
  #part

  constructor(parts, part) {
    this.#parts = parts
    this.#part = this.#names().includes(part) ? part : "profile"
  }

  mount(main) {
    const { shell } = this.#parts
    const head = el(
      "header",
      { class: "main__head" },
      sidebarButton(() => shell.openDrawer("sidebar")),
      el("div", { class: "main__titles" }, el("h1", { class: "main__title" }, t("settings.title"))),
    )
    const inner = el("div", { class: "settings__inner" }, this.#nav())
    main.append(head, el("div", { class: "settings" }, inner))
    inner.append(...PARTS[this.#part].cards(this.#parts))
    this.#parts.title.set(t(`settings.${this.#part}`))
  }

  unmount() {}

  #names() {
    return Object.keys(PARTS).filter((name) => PARTS[name].isFor(this.#parts.store.user))
  }

  #nav() {
    return el(
      "nav",
      { class: "settings__nav", "aria-label": t("settings.title") },
      this.#names().map((name) =>
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
