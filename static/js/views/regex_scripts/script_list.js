// Lists the regex scripts of a card or preset, with the switch that allows them and a tester for each.
import { bdi, el, icon } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { affected, marks } from "../../models/regex_scripts/regex_script.js"
import { check } from "../components/form.js"
import { reasonOf, scriptTester } from "./script_tester.js"

// Returns the list, or null if there are no scripts. `allow(isAllowed)` applies at once.
export function scriptList(parts, { scripts, isAllowed, mayAllow, allow }) {
  if (scripts.length === 0) return null
  const allowed = check({
    label: t("regex.allow"),
    hint: mayAllow ? t("regex.allow_hint") : t("regex.allow_owner"),
    checked: isAllowed,
    name: "regex_allowed",
  })
  allowed.control.disabled = !mayAllow
  allowed.control.addEventListener("change", async () => {
    allowed.control.disabled = true
    try {
      await allow(allowed.control.checked)
      parts.toasts.show(t("saved"))
    } catch (error) {
      allowed.control.checked = !allowed.control.checked
      parts.toasts.error(error)
    }
    allowed.control.disabled = false
    allowed.control.focus()
  })
  return el(
    "section",
    { class: "regex-scripts", "aria-label": t("regex.title") },
    el("h3", { class: "panel__title" }, t("regex.title")),
    allowed.node,
    el(
      "ul",
      { class: "block__list" },
      scripts.map((it) => el("li", {}, shown(it, scriptTester(parts, it)))),
    ),
  )
}

// Returns the scripts of a file before its import.
export function scriptPreview(scripts) {
  return el(
    "section",
    { class: "regex-scripts", "aria-label": t("regex.title") },
    el("h4", {}, t("regex.title")),
    el("p", { class: "field__hint" }, t("regex.off_after_import")),
    el(
      "ul",
      { class: "block__list" },
      scripts.map((it) => el("li", {}, shown(it))),
    ),
  )
}

function shown(script, tester = null) {
  const { name, find_regex: find, replace_string: by, trim_strings: trimmed, error } = script
  const affects = affected(script).map((it) => t(`regex.affects_${it}`))
  const depth = (label, value) => value !== null && fact(label, String(value))
  return el(
    "details",
    { class: "block" },
    el(
      "summary",
      { class: "block__summary" },
      el("span", { class: "grow truncate" }, bdi(name || t("regex.unnamed"))),
      error && icon("alert"),
    ),
    el(
      "dl",
      { class: "regex-script" },
      code(t("regex.find"), find),
      code(t("regex.replace"), by),
      trimmed.length > 0 && code(t("regex.trim"), trimmed.join("\n")),
      fact(t("regex.affects"), affects.join(", ") || t("regex.affects_nothing")),
      depth(t("regex.min_depth"), script.min_depth),
      depth(t("regex.max_depth"), script.max_depth),
      marks(script).map((it) => fact(t(`regex.${it}`), t("regex.yes"))),
    ),
    error && el("p", { class: "outcome outcome--bad" }, icon("alert"), reasonOf(error)),
    tester,
  )
}

function fact(label, value) {
  return [el("dt", {}, label), el("dd", {}, value)]
}

function code(label, value) {
  return [el("dt", {}, label), el("dd", {}, el("code", { class: "regex-script__text" }, value))]
}
