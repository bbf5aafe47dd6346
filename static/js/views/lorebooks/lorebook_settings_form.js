// The form of the World Info settings of a space.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { FLAGS, NUMBERS, numberOf, STRATEGIES, readLorebookSettings } from "../../models/lorebooks/lorebook_settings.js"
import { submitButton } from "../components/button.js"
import { check, field, form, input, select } from "../components/form.js"

const FIRST = ["scan_depth", "token_budget_percent", "recursive", "case_sensitive", "whole_words", "ascii_words"]
const MORE = [
  "token_budget_cap",
  "max_steps",
  "min_activations",
  "min_activations_depth",
  "include_names",
  "group_scoring",
  "insertion_strategy",
]

// `save(rules)` stores the settings.
export function lorebookSettingsForm({ toasts }, { settings, disabled = false, save }) {
  const rules = readLorebookSettings(settings)
  const controls = Object.fromEntries([...FIRST, ...MORE].map((name) => [name, control(name, rules[name])]))
  const nodesOf = (names) => names.map((name) => controls[name].node)
  const more = el("details", { class: "note__more" }, el("summary", {}, t("lorebook_settings.more")), nodesOf(MORE))
  const submit = async () => {
    await save(Object.fromEntries([...FIRST, ...MORE].map((name) => [name, controls[name].value()])))
    toasts.show(t("saved"))
  }
  const actions = el("div", { class: "form__actions form__actions--start" }, submitButton(t("save")))
  const numbers = Object.keys(NUMBERS).map((name) => [`settings.world_info.${name}`, controls[name]])
  const node = form({
    fields: Object.fromEntries(numbers),
    // Opens the collapsed part if one of its fields has an error.
    onError: (error) => {
      const name = error.param?.split(".").at(-1)
      if (MORE.includes(name)) more.open = true
    },
    submit,
    children: [...nodesOf(FIRST), more, actions],
  })
  if (disabled) {
    for (const it of node.querySelectorAll("input, select")) it.disabled = true
    actions.remove()
  }
  return node
}

function control(name, value) {
  const words = { label: t(`lorebook_settings.${name}`) }
  if (name in FLAGS) {
    const hint = name === "ascii_words" ? t("lorebook_settings.ascii_words_hint") : null
    const it = check({ ...words, hint, checked: value, name: `lorebook_settings.${name}` })
    return { ...it, value: () => it.control.checked }
  }
  if (name in NUMBERS) {
    const props = { type: "number", min: "0", max: String(NUMBERS[name].most), step: "1", inputmode: "numeric" }
    const shown = input({ ...props, name: `lorebook_settings.${name}`, value: String(value) })
    const it = field({ ...words, hint: t(`lorebook_settings.${name}_hint`), control: shown })
    return { ...it, value: () => numberOf(name, shown.value) }
  }
  const options = STRATEGIES.map((key) => [key, t(`lorebook_settings.${key}`)])
  const it = field({ ...words, hint: t(`lorebook_settings.${name}_hint`), control: select(options, value) })
  return { ...it, value: () => it.control.value }
}
