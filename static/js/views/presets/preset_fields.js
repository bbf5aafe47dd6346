// The samplers and texts of a preset as fields, each with a button that resets it.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { LOCAL_LISTS, LOCAL_SAMPLERS, LOCAL_TEXTS, SAMPLERS, TEXTS } from "../../models/presets/preset_document.js"
import { iconButton } from "../components/button.js"
import { MODES, ROLE_HANDLINGS } from "../../models/providers/request_options.js"
import { area, check, field, input, select } from "../components/form.js"

const WORDS = {
  examples: ["gradually_push_out", "always_keep", "disabled"],
  example_format: ["auto", "messages", "block"],
  continue_postfix: ["none", "space", "newline", "double_newline"],
  names: ["usual", "in_groups", "in_text", "speaker_only", "never"],
  cache_layout: ["as_listed", "stable_first"],
}

// The options of a provider that a preset may override, with the labels of their values.
const OVERRIDES = {
  mode: { words: MODES, name: (word) => t(`provider_mode.${word}`) },
  role_handling: { words: ROLE_HANDLINGS, name: (word) => t(`role_handling.${word}`) },
}

export function samplerFields(draft, onChange) {
  const fields = (samplers) => samplers.map((it) => sampler(draft, it, onChange))
  const keys = [...LOCAL_SAMPLERS.map(({ key }) => key), ...LOCAL_LISTS, ...LOCAL_TEXTS]
  const local = el(
    "details",
    { class: "note__more", open: keys.some((key) => draft.states(key)) },
    el("summary", {}, t("preset.local_samplers")),
    el("div", { class: "preset__grid" }, fields(LOCAL_SAMPLERS)),
    LOCAL_LISTS.map((key) => lines(draft, key, onChange)),
    LOCAL_TEXTS.map((key) => text(draft, key, onChange)),
  )
  return [el("div", { class: "preset__grid" }, fields(SAMPLERS)), local]
}

export function textFields(draft, onChange) {
  return [
    ...Object.entries(WORDS).map(([key, words]) => choice(draft, key, words, onChange)),
    ...Object.keys(OVERRIDES).map((key) => override(draft, key, onChange)),
    toggle(draft, "show_prefill", onChange),
    lines(draft, "stop", onChange),
    ...TEXTS.map((key) => text(draft, key, onChange)),
  ]
}

function sampler(draft, { key, least, most, step }, onChange) {
  const control = input({
    type: "number",
    name: key,
    min: String(least),
    max: String(most),
    step: String(step),
    inputmode: "decimal",
    placeholder: t("preset.undecided"),
    value: String(draft.value(key) ?? ""),
  })
  const hint = t("preset.range", { least: String(least), most: String(most) })
  const it = field({ label: t(`preset.${key}`), hint, control })
  control.addEventListener("input", () => {
    const value = control.value === "" ? null : Number(control.value)
    const isIn = value === null || (value >= least && value <= most)
    it.showError(isIn ? "" : hint)
    draft.set(key, value)
    onChange()
  })
  const reset = () => {
    control.value = ""
    it.showError("")
    draft.set(key, null)
    onChange()
  }
  return withReset(it, t(`preset.${key}`), reset)
}

function text(draft, key, onChange) {
  const control = area({ name: key, value: draft.value(key) ?? "", rows: "2" })
  const it = field({ label: t(`preset.${key}`), control })
  control.addEventListener("input", () => {
    draft.setText(key, control.value)
    onChange()
  })
  const reset = () => {
    draft.set(key, null)
    control.value = draft.value(key) ?? ""
    onChange()
  }
  return withReset(it, t(`preset.${key}`), reset)
}

// A list with one item in each line.
function lines(draft, key, onChange) {
  const value = (draft.value(key) ?? []).join("\n")
  const control = area({ name: key, value, rows: "2" })
  const it = field({ label: t(`preset.${key}`), hint: t("preset.lines_hint"), control })
  control.addEventListener("input", () => {
    const texts = control.value.split("\n").filter((line) => line !== "")
    draft.set(key, texts.length === 0 ? null : texts)
    onChange()
  })
  return it.node
}

function choice(draft, key, words, onChange) {
  const options = words.map((word) => [word, t(`preset.${key}_${word}`)])
  const control = select(options, draft.value(key))
  control.name = key
  control.addEventListener("change", () => {
    draft.setText(key, control.value)
    onChange()
  })
  return field({ label: t(`preset.${key}`), control }).node
}

function override(draft, key, onChange) {
  const { words, name } = OVERRIDES[key]
  const options = [["", t("preset.as_provider")], ...words.map((word) => [word, name(word)])]
  const control = select(options, draft.value(key) ?? "")
  control.name = key
  control.addEventListener("change", () => {
    draft.set(key, control.value || null)
    onChange()
  })
  return field({ label: t(`provider.${key}`), control }).node
}

function toggle(draft, key, onChange) {
  const { node, control } = check({ label: t(`preset.${key}`), checked: draft.value(key) === true, name: key })
  control.addEventListener("change", () => {
    draft.setText(key, control.checked)
    onChange()
  })
  return node
}

// Adds the reset button next to the control.
function withReset({ node, control }, name, click) {
  const row = el("div", { class: "field__row" })
  control.replaceWith(row)
  row.append(control, iconButton("retry", t("preset.reset", { name }), { look: "small", click }))
  return node
}
