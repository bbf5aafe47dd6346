// The administration pages: `/admin/{part}`.
import { el } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { paths } from "../router.js"
import { sidebarButton } from "../views/components/empty_state.js"
import { modelsCard } from "../views/settings/settings_models.js"
import Overview from "./overview.js"
import Users from "./users.js"
import Runs from "./runs.js"

// Each part has `mount(root)` and `unmount()`.
const PARTS = {
  overview: Overview,
  people: Users,
  models: class {
    #parts
    constructor(parts) {
      this.#parts = parts
    }
    mount(root) {
      root.append(modelsCard(this.#parts))
    }
    unmount() {}
  },
  runs: Runs,
}

export function isAdminPage(part) {
  return Object.hasOwn(PARTS, part)
}

export default class AdminPage {
  #parts
  #name
  #part

  constructor(parts, name) {
    this.#parts = parts
    this.#name = name
    this.#part = new PARTS[name](parts)
  }

  // Lifecycle

  mount(main) {
    const { shell, title } = this.#parts
    const head = el(
      "header",
      { class: "main__head" },
      sidebarButton(() => shell.openDrawer("sidebar")),
      el("div", { class: "main__titles" }, el("h1", { class: "main__title" }, t("admin.title"))),
    )
    const inner = el("div", { class: "settings__inner" }, this.#nav())
    main.append(head, el("div", { class: "settings" }, inner))
    this.#part.mount(inner)
    title.set(t(`admin.${this.#name}`), t("admin.title"))
  }

  unmount() {
    this.#part.unmount()
  }

  // Private

  #nav() {
    const link = (name) =>
      el(
        "a",
        {
          class: "settings__link",
          href: paths.admin(name),
          "aria-current": name === this.#name ? "page" : null,
        },
        t(`admin.${name}`),
      )
    const names = Object.keys(PARTS)
    return el("nav", { class: "settings__nav", "aria-label": t("admin.title") }, names.map(link))
  }
}
