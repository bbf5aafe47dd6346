// Buttons with a label, icon buttons, and submit buttons.
import { el, icon } from "../../base/dom.js"

// `look` is any of "primary", "quiet", "danger", "small", "wide", separated by spaces; `icon` is the
// name of an icon before the label. All other properties become attributes.
export function button(label, { look = "", icon: name = null, class: own = "", click = null, ...rest } = {}) {
  const props = { class: classes("button", look, own), type: "button", on: click ? { click } : {}, ...rest }
  return el("button", props, name && icon(name), label)
}

export function submitButton(label, { look = "primary", ...rest } = {}) {
  return button(label, { look, type: "submit", ...rest })
}

// A button with an icon only; its label is for screen readers and the tooltip.
export function iconButton(name, label, { look = "", class: own = "", click = null, ...rest } = {}) {
  const props = {
    class: classes("icon-button", look, own),
    type: "button",
    "aria-label": label,
    title: label,
  }
  return el("button", { ...props, on: click ? { click } : {}, ...rest }, icon(name))
}

function classes(block, look, own) {
  const looks = look.split(" ").filter(Boolean)
  return [block, ...looks.map((it) => `${block}--${it}`), own].filter(Boolean).join(" ")
}
