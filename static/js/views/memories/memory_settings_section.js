// The memory settings of the open space.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { FLAGS, NUMBERS, numberOf, readMemorySettings } from "../../models/memories/memory_settings.js"
import { submitButton } from "../components/button.js"
import { check, field, form, input } from "../components/form.js"
import { modelChoice } from "../components/model_choice.js"
import EmbeddingChoice from "./embedding_choice.js"

// `save(rules)` stores them.
export function memorySettingsSection(parts, { settings, disabled = false, save }) {
  const { toasts } = parts
  const rules = readMemorySettings(settings)
  const model = modelChoice(parts, { chosen: rules.model, hint: t("memory_settings.model_hint") })
  const embedding = new EmbeddingChoice(parts, rules.embedding, { disabled })
  const flags = Object.fromEntries(FLAGS.map((name) => [name, flag(name, rules[name])]))
  const numbers = Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, number(name, rules[name])]))
  const submit = async () => {
    const values = Object.entries(numbers).map(([name, it]) => [name, numberOf(name, it.control.value)])
    const wrong = values.filter(([, value]) => value === null)
    for (const [name] of wrong) numbers[name].showError(t("memory_settings.not_allowed", NUMBERS[name]))
    if (wrong.length > 0) return numbers[wrong[0][0]].control.focus()
    if (!embedding.requireModel()) return
    const chosen = FLAGS.map((name) => [name, flags[name].control.checked])
    await save({ ...Object.fromEntries([...chosen, ...values]), model: model.value(), embedding: embedding.value })
    toasts.show(t("saved"))
  }
  const actions = el("div", { class: "form__actions form__actions--start" }, submitButton(t("save")))
  const node = form({
    fields: {
      ...Object.fromEntries(Object.entries(numbers).map(([name, it]) => [`settings.memory.${name}`, it])),
      "settings.memory.model": model.field,
      "settings.memory.model.provider_id": model.field,
      "settings.memory.model.model": model.field,
      ...embedding.fields,
    },
    submit,
    children: [
      ...[...Object.values(flags), ...Object.values(numbers)].map((it) => it.node),
      ...model.nodes,
      ...embedding.nodes,
      actions,
    ],
  })
  if (disabled) {
    for (const it of node.querySelectorAll("input, select")) it.disabled = true
    actions.remove()
  }
  return el(
    "section",
    { class: "panel__section", "data-section": "memory" },
    el("h2", {}, t("memory_settings.title")),
    el("p", { class: "field__hint" }, t("memory_settings.hint")),
    node,
  )
}

function flag(name, checked) {
  return check({ label: t(`memory_settings.${name}`), hint: t(`memory_settings.${name}_hint`), checked })
}

function number(name, value) {
  const { least, most, step } = NUMBERS[name]
  const control = input({
    type: "number",
    min: String(least),
    max: String(most),
    step: String(step),
    inputmode: "decimal",
    value: String(value),
  })
  return field({ label: t(`memory_settings.${name}`), hint: t(`memory_settings.${name}_hint`), control })
}
