// The form fields of a card in collapsible parts, with lists for greetings and tags.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { percent } from "../../base/numbers.js"
import { button, iconButton } from "../components/button.js"
import { area, check, field, input, select } from "../components/form.js"

const PARTS = {
  who: ["name", "nickname", "description", "personality", "scenario"],
  words: ["first_mes", "alternate_greetings", "group_only_greetings", "mes_example"],
  rules: ["system_prompt", "post_history_instructions", "depth_prompt", "talkativeness"],
  about: ["creator_notes", "tags", "creator", "character_version"],
}
const LINES = ["name", "nickname", "creator", "character_version"]
const ROWS = { description: "8", first_mes: "5", mes_example: "5" }

// Returns `{ node, fields, read() }`; `fields` by name, for the errors of the server.
export function cardFields(values, { isReadOnly = false } = {}) {
  const made = {}
  const folds = Object.entries(PARTS).map(([part, names]) =>
    el(
      "details",
      { class: "editor__part", open: part === "who" || part === "words" },
      el("summary", { class: "editor__summary" }, t(`card.part_${part}`)),
      names.map((name) => {
        made[name] = make(name, values[name], isReadOnly)
        return made[name].node
      }),
    ),
  )
  return {
    node: el("div", { class: "editor__parts" }, folds),
    fields: made,
    read: () => Object.fromEntries(Object.entries(made).map(([name, it]) => [name, it.read()])),
  }
}

function make(name, value, isReadOnly) {
  if (name === "alternate_greetings" || name === "group_only_greetings") return texts(name, value, isReadOnly)
  if (name === "tags") return tags(value, isReadOnly)
  if (name === "depth_prompt") return depthPrompt(value, isReadOnly)
  if (name === "talkativeness") return talkativeness(value, isReadOnly)
  return text(name, value, isReadOnly)
}

function text(name, value, isReadOnly) {
  const props = { name, value, readonly: isReadOnly }
  const control = LINES.includes(name)
    ? input({ ...props, autocomplete: "off", maxlength: "200" })
    : area({ ...props, rows: ROWS[name] ?? "3" })
  const made = field({ label: t(`card.${name}`), hint: hintOf(name), control })
  return { ...made, read: () => control.value }
}

const HINTED = ["nickname", "mes_example", "system_prompt", "post_history_instructions", "creator_notes"]

function hintOf(name) {
  return HINTED.includes(name) ? t(`card.${name}_hint`) : null
}

// A list of texts, each with a button to remove it.
function texts(name, values, isReadOnly) {
  const list = el("ol", { class: "editor__texts" })
  const add = (value, isNew) => {
    const control = area({ value, rows: "3", readonly: isReadOnly, "aria-label": t(`card.${name}`) })
    const remove = iconButton("trash", t("card.remove_text"), {
      look: "small",
      click: () => {
        row.remove()
        more.focus()
      },
    })
    const row = el("li", { class: "editor__text" }, control, !isReadOnly && remove)
    list.append(row)
    if (isNew) control.focus()
  }
  const more = button(t("card.add_text"), {
    look: "small quiet",
    icon: "plus",
    "data-act": `add_${name}`,
    click: () => add("", true),
  })
  for (const value of values) add(value, false)
  const node = el(
    "fieldset",
    { class: "field editor__list" },
    el("legend", { class: "field__label" }, t(`card.${name}`)),
    list,
    !isReadOnly && more,
  )
  const read = () => [...list.querySelectorAll("textarea")].map((it) => it.value)
  return { node, control: more, showError: () => {}, read: () => read().filter((it, at) => it !== "" || at < values.length && values[at] === "") }
}

function tags(values, isReadOnly) {
  const control = input({ name: "tags", value: values.join(", "), readonly: isReadOnly, autocomplete: "off" })
  const made = field({ label: t("card.tags"), hint: t("card.tags_hint"), control })
  // Unchanged tags are returned as they were, also tags that contain commas.
  const read = () =>
    control.value === values.join(", ")
      ? values
      : control.value
          .split(/[,，、]/)
          .map((it) => it.trim())
          .filter(Boolean)
  return { ...made, read }
}

function depthPrompt(value, isReadOnly) {
  const note = area({ name: "depth_prompt", value: value.prompt, rows: "3", readonly: isReadOnly })
  const depth = input({
    type: "number",
    min: "0",
    max: "10000",
    value: String(value.depth),
    readonly: isReadOnly,
    inputmode: "numeric",
  })
  const role = select(
    ["system", "user", "assistant"].map((it) => [it, t(`prompt.role_${it}`)]),
    value.role,
  )
  role.disabled = isReadOnly
  const made = field({ label: t("card.depth_prompt"), hint: t("card.depth_prompt_hint"), control: note })
  const beside = el(
    "div",
    { class: "editor__beside" },
    field({ label: t("card.depth"), control: depth }).node,
    field({ label: t("card.role"), control: role }).node,
  )
  made.node.append(beside)
  const read = () => ({
    prompt: note.value,
    depth: depth.value === "" ? value.depth : Math.max(0, Math.trunc(Number(depth.value))),
    role: role.value,
  })
  return { ...made, read }
}

// A card without a value uses the rule of the space.
function talkativeness(value, isReadOnly) {
  const range = el("input", {
    class: "range",
    type: "range",
    min: "0",
    max: "1",
    step: "0.05",
    value: String(value ?? 0.5),
    disabled: isReadOnly,
  })
  const output = el("output", { class: "field__value" })
  const states = check({ label: t("card.talkativeness_stated"), checked: value !== null })
  states.control.disabled = isReadOnly
  let isMoved = false
  const show = () => {
    range.hidden = !states.control.checked
    replace(output, states.control.checked ? percent(Number(range.value)) : null)
    range.setAttribute("aria-valuetext", percent(Number(range.value)))
  }
  range.addEventListener("input", () => {
    isMoved = true
    show()
  })
  states.control.addEventListener("change", show)
  const made = field({ label: t("card.talkativeness"), hint: t("member.talkativeness_hint"), control: range })
  made.node.prepend(states.node)
  made.node.append(output)
  show()
  const read = () => {
    if (!states.control.checked) return null
    return isMoved || value === null ? Number(range.value) : value
  }
  return { ...made, read }
}
