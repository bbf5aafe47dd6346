// The dialog that chooses to whom the next messages are whispered. Each choice applies at once.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { matching } from "../../models/conversation/mentions.js"
import { avatar } from "../components/avatar.js"
import { button } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { input } from "../components/form.js"

// Among more members than these, a name is searched.
const SEARCHED_FROM = 8

// `members` are those that can be chosen, `chosen` are ids; `onChoose(ids)` is called with each change.
export async function openRecipientsDialog(_parts, { members, chosen, onChoose }) {
  const ids = new Set(chosen)
  const rows = el("div", { class: "recipients__list", role: "group", "aria-label": t("whisper.recipients") })
  const choose = (id, isOn) => {
    if (isOn) ids.add(id)
    else ids.delete(id)
    onChoose([...ids])
  }
  const show = (query) =>
    replace(
      rows,
      matching(members, query).map((member) => row(member, ids, choose)),
    )
  show("")
  await openDialog({
    title: t("whisper.title"),
    content: (close) => [
      el("p", { class: "dialog__lead" }, t("whisper.lead")),
      members.length > SEARCHED_FROM && search(show),
      members.length === 0 ? el("p", { class: "field__hint" }, t("whisper.nobody")) : rows,
      el(
        "div",
        { class: "form__actions" },
        button(t("whisper.everyone"), {
          look: "quiet",
          click: () => {
            onChoose([])
            close()
          },
        }),
        button(t("whisper.done"), { look: "primary", click: () => close() }),
      ),
    ],
  })
}

function search(show) {
  const label = t("whisper.search")
  const on = { input: ({ currentTarget }) => show(currentTarget.value.trim()) }
  return input({ type: "search", "aria-label": label, placeholder: label, on })
}

// The whole row is the checkbox, so that it is large enough to touch.
function row({ id, display_name: name, avatar_url: url, kind }, ids, choose) {
  const click = ({ currentTarget }) => {
    choose(id, !ids.has(id))
    currentTarget.setAttribute("aria-checked", String(ids.has(id)))
  }
  const checked = String(ids.has(id))
  return el(
    "button",
    { class: "recipients__row", type: "button", role: "checkbox", "aria-checked": checked, "data-member": id, on: { click } },
    el("span", { class: "recipients__check" }, icon("check")),
    avatar({ name, url, size: "small" }),
    bdi(name, "truncate grow"),
    el("span", { class: "completions__kind" }, kind === "character" ? t("mentions.character") : t("mentions.person")),
  )
}
