// A page with nothing on it says why, and what to do next.
import { el, icon } from "../base/dom.js"
import { t } from "../base/i18n.js"

export function hollow({ title, text, action, openRail }) {
  const button = action.href
    ? el("a", { class: "button button--primary", href: action.href }, action.label)
    : el("button", { class: "button button--primary", type: "button", on: { click: action.run } }, action.label)
  return el("section", { class: "hollow" }, railButton(openRail), el("h1", { class: "hollow__title" }, title), el("p", {}, text), button)
}

// Opens the left drawer where the rail is one.
export function railButton(click) {
  return el("button", { class: "icon-button for-rail-drawer", type: "button", "aria-label": t("rail.open"), on: { click } }, icon("menu"))
}
