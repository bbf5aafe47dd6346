// The right panel with the tabs Cast, Lore, Memory, Prompt, and Settings.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button, iconButton } from "../components/button.js"
import MembersTab from "../members/members_tab.js"
import { importModule } from "../on_demand.js"

// The tabs by name: the first is part of the page, the others are loaded when they are first shown.
const TABS = {
  cast: null,
  lore: () => import("../lorebooks/lorebook_tab.js"),
  memory: () => import("../memories/memory_tab.js"),
  runs: () => import("../prompt/runs_tab.js"),
  settings: () => import("../spaces/space_settings_tab.js"),
}
const CHOSEN = "troupe.panel_tab"

export default class Panel {
  #root
  #parts
  #body
  #buttons = new Map()
  #tab = null
  #name
  #request = 0

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
    this.#name = parts.local.getItem(CHOSEN) in TABS ? parts.local.getItem(CHOSEN) : "cast"
  }

  // Lifecycle

  mount() {
    const { store, shell } = this.#parts
    const tabs = el(
      "div",
      { class: "panel__tabs", role: "tablist", "aria-label": t("panel.label") },
      Object.keys(TABS).map((name) => this.#button(name)),
    )
    const close = iconButton("close", t("panel.close"), {
      class: "for-panel-drawer",
      click: () => shell.closeDrawer(),
    })
    this.#body = el("div", { class: "panel__body", role: "tabpanel", id: "panel-body", tabindex: "0" })
    replace(this.#root, el("header", { class: "panel__head" }, tabs, close), this.#body)
    tabs.addEventListener("keydown", (event) => this.#onKey(event))
    store.on("open", () => this.#show(this.#name))
    store.on("panel", (name) => this.#show(name))
    this.#show(this.#name)
  }

  // Private

  #button(name) {
    const click = () => this.#show(name)
    const button = el(
      "button",
      {
        class: "panel__tab",
        type: "button",
        role: "tab",
        id: `panel-tab-${name}`,
        "aria-controls": "panel-body",
        on: { click },
      },
      t(`panel.${name}`),
    )
    this.#buttons.set(name, button)
    return button
  }

  #show(name) {
    this.#request += 1
    this.#body.removeAttribute("aria-busy")
    this.#tab?.unmount()
    this.#tab = null
    this.#name = name
    this.#parts.local.setItem(CHOSEN, name)
    for (const [key, button] of this.#buttons) {
      button.setAttribute("aria-selected", String(key === name))
      button.tabIndex = key === name ? 0 : -1
    }
    this.#body.setAttribute("aria-labelledby", `panel-tab-${name}`)
    this.#buttons.get(name)?.scrollIntoView({ block: "nearest", inline: "nearest" })
    replace(this.#body)
    this.#body.scrollTop = 0
    if (!this.#parts.store.openConversation) return
    if (TABS[name]) this.#load(TABS[name])
    else this.#mount(MembersTab)
  }

  // Another tab or conversation may be shown in the meantime.
  async #load(load) {
    const request = this.#request
    this.#body.setAttribute("aria-busy", "true")
    const module = await importModule(load)
    if (request !== this.#request) return
    this.#body.removeAttribute("aria-busy")
    if (module) this.#mount(module.default)
    else this.#showFailed()
  }

  #showFailed() {
    const reload = button(t("reload"), { look: "small", click: () => location.reload() })
    replace(this.#body, el("div", { class: "panel__empty" }, el("p", {}, t("error.load")), reload))
  }

  #mount(Tab) {
    this.#tab = new Tab(this.#body, this.#parts)
    this.#tab.mount()
  }

  #onKey(event) {
    const names = [...this.#buttons.keys()]
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step) return
    event.preventDefault()
    const next = names[(names.indexOf(this.#name) + step + names.length) % names.length]
    this.#show(next)
    this.#buttons.get(next).focus()
  }
}
