// A page without content: says why, and offers the next action.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button, iconButton } from "./button.js"

export function emptyState({ title, text, action, openSidebar }) {
  const control = action.href
    ? el("a", { class: "button button--primary", href: action.href }, action.label)
    : button(action.label, { look: "primary", click: action.run })
  return el(
    "section",
    { class: "empty-state" },
    sidebarButton(openSidebar),
    el("h1", { class: "empty-state__title", tabindex: "-1" }, title),
    el("p", { class: "empty-state__text" }, text),
    control,
  )
}

// The button that opens the sidebar on narrow screens.
export function sidebarButton(click) {
  return iconButton("menu", t("sidebar.open"), { class: "for-sidebar-drawer", click })
}
