// A page with nothing on it says why, and what to do next.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button, iconButton } from "./buttons.js"

export function hollow({ title, text, action, openRail }) {
  const way = action.href
    ? el("a", { class: "button button--primary", href: action.href }, action.label)
    : button(action.label, { look: "primary", click: action.run })
  return el(
    "section",
    { class: "empty-state" },
    railButton(openRail),
    el("h1", { class: "empty-state__title", tabindex: "-1" }, title),
    el("p", { class: "empty-state__text" }, text),
    way,
  )
}

// Opens the left drawer where the rail is one.
export function railButton(click) {
  return iconButton("menu", t("sidebar.open"), { class: "for-sidebar-drawer", click })
}
