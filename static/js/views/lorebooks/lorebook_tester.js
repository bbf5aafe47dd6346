// Tests a lorebook: shows which entries a text activates, by which key, where their texts are in the prompt, and
// why the others are not activated.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { readLorebookPosition } from "../../models/lorebooks/lorebook_position.js"
import { readLorebookReason } from "../../models/lorebooks/lorebook_reason.js"
import { sentencesOf } from "../../models/files/import_warnings.js"
import { may } from "../../models/members/rights.js"
import { submitButton } from "../components/button.js"
import { area, check, field, form } from "../components/form.js"

// `openEntry(id)` shows an entry; the lorebook may change between two tests.
export function lorebookTester(parts, bookId, openEntry) {
  const { openConversation, openSpace } = parts.store
  const text = field({ label: t("lorebook.test_text"), control: area({ rows: "2", name: "text" }) })
  const here = check({ label: t("lorebook.test_here"), hint: t("lorebook.test_here_hint"), name: "here" })
  const mayTestHere = openConversation && may(openSpace?.my_role, "prompt")
  const outcome = el("div", { class: "lore-outcome", role: "status" })
  const submit = async () => {
    const conversationId = here.control.checked ? openConversation.conversationId : null
    const tried = await parts.lorebooks.testText(bookId, text.control.value, conversationId)
    const fired = tried.fired.map((it) => ({
      ...it,
      notes: [reason(it.because), positionOf(it.position), it.lorebook_id === bookId ? null : it.book],
      isOpened: it.lorebook_id === bookId,
    }))
    const notFired = tried.not_fired.map((it) => ({ ...it, notes: [reason(it.because)], isOpened: true }))
    replace(
      outcome,
      sentencesOf(tried).map((it) => el("p", { class: "outcome outcome--bad" }, icon("alert"), el("span", {}, it))),
      list(t("lorebook.activated", { n: fired.length }), "ol", fired, "good", openEntry),
      list(t("lorebook.not_activated", { n: notFired.length }), "ul", notFired, "quiet", openEntry),
    )
  }
  const node = form({
    fields: { text },
    submit,
    children: [
      text.node,
      mayTestHere && here.node,
      el("div", { class: "form__actions form__actions--start" }, submitButton(t("lorebook.test"))),
    ],
  })
  return el("div", { class: "lore-tester" }, node, outcome)
}

// `tag`: "ol" if the order of the entries matters.
function list(title, tag, judged, look, openEntry) {
  return [
    el("h3", { class: "lore-outcome__title" }, title),
    el(
      tag,
      { class: `lore-judged lore-judged--${look}` },
      judged.map((it) => el("li", {}, row(it, openEntry))),
    ),
  ]
}

function row({ entry_id: id, name, notes, isOpened }, openEntry) {
  const names = el(
    "span",
    { class: "member__names" },
    bdi(name || t("lorebook.hidden_entry"), "member__name"),
    notes.filter(Boolean).map((it) => el("span", { class: "member__note" }, it)),
  )
  // Entries of other lorebooks are not in this dialog.
  if (!isOpened) return names
  return el("button", { class: "member__button", type: "button", on: { click: () => openEntry(id) } }, names)
}

function reason(because) {
  const read = readLorebookReason(because)
  return read ? t(read.key, read.values) : because
}

function positionOf(position) {
  const read = readLorebookPosition(position)
  return read && t(read.key, { ...read.values, role: read.role && t(read.role) })
}
