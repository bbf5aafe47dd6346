// The fields of a space's settings by their API names, in groups. Each returns its value for the API.
import { el } from "../../base/dom.js"
import { has, t } from "../../base/i18n.js"
import { languageOptions } from "../../models/message/reading_languages.js"
import { area, check, field, input, select } from "../components/form.js"

const ORDERS = ["manual", "natural", "list", "pooled", "director"]
const REPLIES = ["one", "activated"]
const POLICIES = ["reject", "queue", "restart"]
const CARDS = ["swap", "append", "append_disabled"]
const REGENERATE_MODES = ["single_message", "last_turn"]

// `providers` are the connected providers.
export function fieldsOf(space, providers) {
  return {
    name: text(field({ label: t("space.name"), control: input({ value: space.name, maxlength: "100" }) })),
    description: text(
      field({ label: t("space.description"), control: area({ value: space.description ?? "" }) }),
    ),
    settings: text(
      field({
        label: t("space.scenario"),
        hint: t("space.scenario_hint"),
        control: area({ value: space.settings?.scenario_override ?? "", rows: "4" }),
      }),
    ),
    card_handling_mode: choice(t("space.cards"), CARDS, {
      value: space.card_handling_mode,
      nameOf: (key) => t(`cards.${key}`),
      hintOf: (key) => t(`cards.${key}_hint`),
    }),
    ...speakers(space, providers),
    user_turn_debounce_ms: seconds(t("space.debounce"), t("space.debounce_hint"), {
      value: space.user_turn_debounce_ms,
      most: 60,
    }),
    slow_mode_s: number(t("space.slow_mode"), t("space.slow_mode_hint"), {
      value: space.slow_mode_s,
      least: 0,
      most: 21_600,
    }),
    humans_take_turns: tick(t("space.human_turns"), t("space.human_turns_hint"), space.humans_take_turns),
    human_turn_timeout_s: number(t("space.turn_timeout"), t("space.turn_timeout_hint"), {
      value: space.human_turn_timeout_s,
      least: 0,
      most: 86_400,
    }),
    during_generation_user_input_policy: text(
      field({
        label: t("space.policy"),
        control: select(
          POLICIES.map((key) => [key, t(`policy.${key}`)]),
          space.during_generation_user_input_policy,
        ),
      }),
    ),
    allow_self_responses: tick(t("space.self"), t("space.self_hint"), space.allow_self_responses),
    auto_mode_enabled: tick(t("space.auto"), t("space.auto_hint"), space.auto_mode_enabled),
    auto_mode_delay_ms: seconds(t("space.auto_delay"), t("space.auto_delay_hint"), {
      value: space.auto_mode_delay_ms,
      most: 600,
    }),
    auto_mode_max_turns: number(t("space.auto_turns"), t("space.auto_turns_hint"), {
      value: space.auto_mode_max_turns,
      least: 1,
      most: 100,
    }),
    group_regenerate_mode: choice(t("space.regenerate_mode"), REGENERATE_MODES, {
      value: space.group_regenerate_mode,
      nameOf: (key) => t(`regenerate_mode.${key}`),
      hintOf: (key) => t(`regenerate_mode.${key}_hint`),
    }),
    ...translation(space, providers),
  }
}

// Returns the fields in groups.
export function groupsOf(fields) {
  const { name, description, settings, card_handling_mode: cards, ...others } = fields
  const {
    auto_mode_enabled: auto,
    auto_mode_delay_ms: delay,
    auto_mode_max_turns: turns,
    translation_provider_id: translator,
    model_language: language,
    ...speaking
  } = others
  const { group_regenerate_mode: regenerate, ...rest } = speaking
  return [
    group(t("space.part_about"), [name, description, settings, cards]),
    group(t("space.part_replies"), Object.values(rest)),
    group(t("space.part_auto"), [auto, delay, turns]),
    group(t("space.part_regenerate"), [regenerate]),
    group(t("space.part_translation"), [translator, language]),
  ]
}

function group(title, fields) {
  return el(
    "fieldset",
    { class: "form__group" },
    el("legend", { class: "form__legend" }, title),
    fields.map((it) => it.node),
  )
}

// The provider that translates, and the language of the models; both may be none.
function translation(space, providers) {
  const { translation_provider_id: chosen, model_language: language } = space
  const translator = provider(
    providers.filter((it) => it.kind !== "demo"),
    { label: t("space.translator"), hint: t("space.translator_hint"), none: t("space.no_translator"), chosen },
  )
  const ofModels = field({
    label: t("space.model_language"),
    hint: t("space.model_language_hint"),
    control: select([["", t("space.any_language")], ...languageOptions(language)], language ?? ""),
  })
  return {
    translation_provider_id: translator,
    model_language: { ...ofModels, value: () => ofModels.control.value || null },
  }
}

// A select of a provider, or `none`. A chosen provider that this user cannot see is kept.
function provider(providers, { label, hint, none, chosen }) {
  const options = providers
    .filter((it) => !it.disabled || it.id === chosen)
    .map((it) => [String(it.id), it.name])
  if (chosen !== null && !options.some(([id]) => id === String(chosen)))
    options.push([String(chosen), t("member.model_unknown")])
  const control = select([["", none], ...options], chosen === null ? "" : String(chosen))
  const it = field({ label, hint, control })
  return { ...it, value: () => Number(control.value) || null }
}

// The hints of the reply order depend on the number of replies. The director's model is shown only for its
// order.
function speakers(space, providers) {
  const replies = choice(t("space.replies"), REPLIES, {
    value: space.replies_per_turn,
    nameOf: (key) => t(`replies.${key}`),
    hintOf: (key) => t(`replies.${key}_hint`),
  })
  const order = choice(t("space.order"), ORDERS, {
    value: space.reply_order,
    nameOf: (key) => t(`order.${key}`),
    hintOf: (key) => {
      const ofRound = `order.${key}_${replies.control.value}_hint`
      return has(ofRound) ? t(ofRound) : t(`order.${key}_hint`)
    },
  })
  replies.control.addEventListener("change", order.explain)
  const director = provider(providers, {
    label: t("space.director"),
    hint: t("space.director_hint"),
    none: t("space.default_director"),
    chosen: space.director_provider_id,
  })
  const showDirector = () => {
    director.node.hidden = order.control.value !== "director"
  }
  order.control.addEventListener("change", showDirector)
  showDirector()
  return { reply_order: order, director_provider_id: director, replies_per_turn: replies }
}

// A select whose hint explains the selected value.
function choice(label, keys, { value, nameOf, hintOf }) {
  const control = select(
    keys.map((key) => [key, nameOf(key)]),
    value,
  )
  const it = text(field({ label, hint: hintOf(value), control }))
  const explain = () => {
    it.node.querySelector(".field__hint").textContent = hintOf(control.value)
  }
  control.addEventListener("change", explain)
  return { ...it, explain }
}

function text(it) {
  return { ...it, value: () => it.control.value.trim() }
}

function tick(label, hint, checked) {
  const it = check({ label, hint, checked })
  return { ...it, showError: () => {}, value: () => it.control.checked }
}

function seconds(label, hint, { value, most }) {
  const control = numberInput({ value: value / 1000, least: 0, most, step: "0.1" })
  return { ...field({ label, hint, control }), value: () => Math.round(Number(control.value) * 1000) }
}

function number(label, hint, { value, least, most }) {
  const control = numberInput({ value, least, most, step: "1" })
  return { ...field({ label, hint, control }), value: () => Number(control.value) }
}

function numberInput({ value, least, most, step }) {
  return input({
    type: "number",
    min: String(least),
    max: String(most),
    step,
    inputmode: "decimal",
    value: String(value),
  })
}
