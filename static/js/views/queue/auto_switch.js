// The switch of auto mode with the number of turns left.
import { el, icon } from "../../base/dom.js"
import { t } from "../../base/i18n.js"

// `auto` is the result of `describeAutoMode`. Users who cannot change it see it only while it is on.
export function autoSwitch(parts, { status, left }, mayChange) {
  const isOn = status !== "off"
  if (!mayChange && !isOn) return null
  const label = isOn ? t("auto.on", { n: left }) : t("auto.off")
  const content = [
    icon("loop"),
    el("span", { class: "auto__name" }, t("auto.name")),
    isOn && el("span", { class: "auto__left", "aria-hidden": "true" }, String(left)),
  ]
  const props = {
    class: `auto ${isOn ? "auto--on" : ""}`,
    title: label,
    "data-auto": status,
    "data-left": isOn ? left : null,
  }
  if (!mayChange) return el("span", { ...props, role: "img", "aria-label": label }, content)
  const click = ({ currentTarget }) => change(parts, currentTarget, !isOn)
  return el(
    "button",
    {
      ...props,
      type: "button",
      role: "switch",
      "aria-checked": String(isOn),
      "aria-label": label,
      "data-act": "auto",
      on: { click },
    },
    content,
  )
}

async function change({ store, spaces, toasts }, button, isOn) {
  button.disabled = true
  try {
    await spaces.changeSpace(store.openSpace, { auto_mode_enabled: isOn })
  } catch (error) {
    toasts.error(error)
  }
  button.disabled = false
}
