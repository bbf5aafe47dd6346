// The rules for summaries of the open space.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { NUMBERS, numberOf, readSummarySettings } from "../../models/summaries/summary_settings.js"
import { submitButton } from "../components/button.js"
import { check, field, form, input } from "../components/form.js"
import { modelChoice } from "../components/model_choice.js"

// `save(rules)` stores them.
export function summarySettingsSection(parts, { settings, disabled = false, save }) {
  const rules = readSummarySettings(settings)
  const enabled = check({
    label: t("summary_settings.enabled"),
    hint: t("summary_settings.enabled_hint"),
    checked: rules.enabled,
  })
  const numbers = Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, number(name, rules[name])]))
  const model = modelChoice(parts, { chosen: rules.model, hint: t("summary_settings.model_hint") })
  const submit = async () => {
    const values = Object.entries(numbers).map(([name, it]) => [name, numberOf(name, it.control.value)])
    const wrong = values.filter(([, value]) => value === null)
    for (const [name] of wrong) numbers[name].showError(t("summary_settings.not_allowed", NUMBERS[name]))
    if (wrong.length > 0) return numbers[wrong[0][0]].control.focus()
    await save({ enabled: enabled.control.checked, model: model.value(), ...Object.fromEntries(values) })
    parts.toasts.show(t("saved"))
  }
  const actions = el("div", { class: "form__actions form__actions--start" }, submitButton(t("save")))
  const node = form({
    fields: byParam({ ...numbers, model: model.field, "model.provider_id": model.field, "model.model": model.field }),
    submit,
    children: [enabled.node, ...Object.values(numbers).map((it) => it.node), ...model.nodes, actions],
  })
  if (disabled) {
    for (const it of node.querySelectorAll("input, select")) it.disabled = true
    actions.remove()
  }
  return el(
    "section",
    { class: "panel__section", "data-section": "summaries" },
    el("h2", {}, t("summary_settings.title")),
    el("p", { class: "field__hint" }, t("summary_settings.hint")),
    node,
  )
}

// The server names a field by its path.
function byParam(fields) {
  return Object.fromEntries(Object.entries(fields).map(([name, it]) => [`settings.memory.summaries.${name}`, it]))
}

function number(name, value) {
  const { least, most } = NUMBERS[name]
  const control = input({
    type: "number",
    min: String(least),
    max: String(most),
    step: "1",
    inputmode: "numeric",
    value: String(value),
  })
  return field({ label: t(`summary_settings.${name}`), hint: t(`summary_settings.${name}_hint`), control })
}
