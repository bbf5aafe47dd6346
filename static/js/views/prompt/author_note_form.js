// The form of an author's note: text, position, depth, role and interval.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { COMBINE_MODES, readAuthorNote, POSITIONS, ROLES, wholeNumber } from "../../models/presets/author_note.js"
import { submitButton } from "../components/button.js"
import { area, field, form, input, select } from "../components/form.js"

// `save(note)` stores it; `beside` shows how it is combined with the note of the space.
export function authorNoteForm({ toasts }, { settings, label, hint, beside = false, disabled = false, save }) {
  const note = readAuthorNote(settings)
  const text = field({ label, hint, control: area({ value: note.text, rows: "4", maxlength: "20000" }) })
  const position = choice(t("author_note.position"), POSITIONS, note.position, (it) => t(`author_note.position_${it}`))
  const depth = count(t("author_note.depth"), t("author_note.depth_hint"), note.depth)
  const role = choice(t("author_note.role"), ROLES, note.role, (it) => t(`author_note.role_${it}`))
  const interval = count(t("author_note.interval"), t("author_note.interval_hint"), note.interval)
  const combine =
    beside && choice(t("author_note.combine"), COMBINE_MODES, note.combine, (it) => t(`author_note.combine_${it}`))
  const settle = () => {
    depth.node.hidden = position.control.value !== "in_chat"
  }
  position.control.addEventListener("change", settle)
  settle()
  const more = el(
    "details",
    { class: "note__more" },
    el("summary", {}, t("author_note.more")),
    [combine, position, depth, role, interval].filter(Boolean).map((it) => it.node),
  )
  const submit = async () => {
    await save({
      text: text.control.value,
      position: position.control.value,
      depth: wholeNumber(depth.control.value, note.depth),
      role: role.control.value,
      interval: wholeNumber(interval.control.value, note.interval),
      ...(combine ? { combine: combine.control.value } : {}),
    })
    toasts.show(t("saved"))
  }
  const actions = el("div", { class: "form__actions form__actions--start" }, submitButton(t("save")))
  const node = form({
    fields: { "settings.author_note.depth": depth, "settings.author_note.interval": interval },
    submit,
    children: [text.node, more, actions],
  })
  if (disabled) {
    for (const control of node.querySelectorAll("input, textarea, select")) control.disabled = true
    actions.remove()
  }
  return node
}

function choice(label, values, value, nameOf) {
  const control = select(
    values.map((it) => [it, nameOf(it)]),
    value,
  )
  return field({ label, control })
}

function count(label, hint, value) {
  const control = input({
    type: "number",
    min: "0",
    max: "10000",
    step: "1",
    inputmode: "numeric",
    value: String(value),
  })
  return field({ label, hint, control })
}
