// The fields of a memory in the dialogs that add and edit one.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { percent } from "../../base/numbers.js"
import { choosableKinds, DEFAULT_IMPORTANCE, MAX_CONTENT_CHARS } from "../../models/memories/memory.js"
import { aboutChoices } from "../../models/memories/memory_rights.js"
import { area, check, field, input, select } from "../components/form.js"
import { nameOf } from "./memory_text.js"

// The fields of a memory, or of a new one (null): `nodes` in order, `byName` those that can show an
// error, and `values()` for the API. Whose a memory is can be chosen for a new one only.
export function memoryFields({ store }, memory) {
  const content = field({
    label: t("memory.content"),
    hint: t("memory.content_hint"),
    control: area({ value: memory?.content ?? "", maxlength: String(MAX_CONTENT_CHARS), autofocus: true, dir: "auto" }),
  })
  const kinds = choosableKinds(memory?.kind).map((it) => [it, t(`memory_kind.${it}`)])
  const kind = field({ label: t("memory.kind"), control: select(kinds, memory?.kind ?? "event") })
  const about = aboutField(store, memory)
  const owner = memory ? null : ownerField(store)
  const importance = importanceField(memory?.importance ?? DEFAULT_IMPORTANCE)
  const pinned = check({ label: t("memory.pinned"), hint: t("memory.pinned_hint"), checked: memory?.pinned ?? false })
  return {
    byName: { content, about_membership_id: about, ...(owner && { membership_id: owner }) },
    nodes: [content, kind, about, owner, importance, pinned].filter(Boolean).map((it) => it.node),
    values: () => ({
      // The server stores one line.
      content: content.control.value.replace(/\s+/g, " ").trim(),
      kind: kind.control.value,
      about_membership_id: idOf(about),
      importance: Number(importance.control.value),
      pinned: pinned.control.checked,
      ...(owner && { membership_id: idOf(owner) }),
    }),
    nameContent: (label) => {
      content.node.querySelector("label").textContent = label
    },
    // Returns whether there is a content; shows an error if not.
    requireContent: () => {
      const isGiven = content.control.value.trim() !== ""
      content.showError(isGiven ? "" : t("field.needed"))
      if (!isGiven) content.control.focus()
      return isGiven
    },
  }
}

function idOf({ control }) {
  return control.value === "" ? null : Number(control.value)
}

// Keeps a member who has left.
function aboutField(store, memory) {
  const { openSpace: space, myMembership, openRoster } = store
  const present = memory?.about_membership_id ?? null
  const ids = openRoster.active.map((it) => it.id)
  const choices = new Set(aboutChoices(space, myMembership, ids))
  if (memory) choices.add(present)
  const options = [...choices].map((id) =>
    id === null ? ["", t("memory.about_nobody")] : [String(id), nameOf(store, id)],
  )
  return field({ label: t("memory.about_label"), control: select(options, present === null ? "" : String(present)) })
}

function ownerField(store) {
  const { myMembership, openRoster } = store
  const members = [...openRoster.characters, myMembership].filter(Boolean)
  const options = [["", t("memory.whose_everyone")], ...members.map((it) => [String(it.id), it.display_name])]
  return field({ label: t("memory.whose"), hint: t("memory.whose_hint"), control: select(options, "") })
}

function importanceField(value) {
  const control = input({ type: "range", class: "range", min: "0", max: "1", step: "0.05" })
  // The step would round the value of a learned memory.
  if (Math.abs(value * 20 - Math.round(value * 20)) > 1e-9) control.step = "any"
  control.value = String(value)
  const it = field({ label: t("memory.importance"), hint: t("memory.importance_hint"), control })
  const output = el("output", { class: "field__value", for: control.id })
  const show = () => {
    output.textContent = percent(Number(control.value))
    control.setAttribute("aria-valuetext", output.textContent)
  }
  control.addEventListener("input", show)
  show()
  const label = it.node.querySelector("label")
  label.classList.add("grow")
  it.node.prepend(el("div", { class: "field__row" }, label, output))
  return it
}
