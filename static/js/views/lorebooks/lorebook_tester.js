// Tests a lorebook: shows which entries a text activates, by which key, and why the others are not
// activated.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { readLorebookReason } from "../../models/lorebooks/lorebook_reason.js"
import { sentencesOf } from "../../models/files/import_warnings.js"
import { submitButton } from "../components/button.js"
import { area, field, form } from "../components/form.js"

// `openEntry(id)` shows an entry; the lorebook may change between two tests.
export function lorebookTester(parts, bookId, openEntry) {
  const text = field({ label: t("lorebook.test_text"), control: area({ rows: "2", name: "text" }) })
  const outcome = el("div", { class: "lore-outcome", role: "status" })
  const submit = async () => {
    const tried = await parts.lorebooks.testText(bookId, text.control.value)
    replace(
      outcome,
      sentencesOf(tried).map((it) => el("p", { class: "outcome outcome--bad" }, icon("alert"), el("span", {}, it))),
      list(t("lorebook.activated", { n: tried.fired.length }), tried.fired, "good", openEntry),
      list(t("lorebook.not_activated", { n: tried.not_fired.length }), tried.not_fired, "quiet", openEntry),
    )
  }
  const node = form({
    fields: { text },
    submit,
    children: [text.node, el("div", { class: "form__actions form__actions--start" }, submitButton(t("lorebook.test")))],
  })
  return el("div", { class: "lore-tester" }, node, outcome)
}

function list(title, judged, look, openEntry) {
  return [
    el("h3", { class: "lore-outcome__title" }, title),
    el(
      "ul",
      { class: `lore-judged lore-judged--${look}` },
      judged.map((it) =>
        el(
          "li",
          {},
          el(
            "button",
            { class: "member__button", type: "button", on: { click: () => openEntry(it.entry_id) } },
            el(
              "span",
              { class: "member__names" },
              bdi(it.name, "member__name"),
              el("span", { class: "member__note" }, reason(it.because)),
            ),
          ),
        ),
      ),
    ),
  ]
}

function reason(because) {
  const read = readLorebookReason(because)
  return read ? t(read.key, read.values) : because
}
