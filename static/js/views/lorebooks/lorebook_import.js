// A lorebook out of a file: what is in it, whether it is to take part here at once, and what was put right.
import { bdi, el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { looksLikeBook, previewOf } from "../../models/lorebooks/lorebook_file.js"
import { may } from "../../models/members/rights.js"
import { sentencesOf } from "../../models/files/import_warnings.js"
import { submitButton } from "../components/buttons.js"
import { openDialog } from "../components/dialog.js"
import { check, form } from "../components/form.js"

// A book that is dropped goes on one's shelf.
export function takeDroppedBooks(parts) {
  parts.drop.takes({
    name: "lorebook",
    looksLike: (file, head, json) => looksLikeBook(json),
    open: (file, json) => askForBook(parts, file, json),
  })
}

async function askForBook(parts, file, json) {
  const brought = await openDialog({
    title: t("lorebook.import"),
    content: (close) => sheet(parts, { file, ...previewOf(json, file.name) }, close),
  })
  if (!brought) return
  parts.toasts.show(t("lorebook.imported", { name: brought.lorebook.name }))
  parts.lore.wasBrought()
  if (brought.warnings.length > 0) await tellWarnings(brought)
}

function sheet(parts, { file, name, n }, close) {
  const { openSpace: space } = parts.store
  const here = check({ label: t("lorebook.use_here", { space: space?.name ?? "" }), checked: true })
  const mayLink = space && may(space.my_role, "settings")
  const submit = async () => {
    const brought = await parts.lore.bring(file)
    const place = { kind: "spaces", id: space?.id }
    if (mayLink && here.control.checked)
      await parts.lore.link(place, [...(await parts.lore.linked(place)), brought.lorebook])
    close(brought)
  }
  return form({
    submit,
    children: [
      el("p", {}, bdi(name, "member__name")),
      el("p", { class: "field__hint" }, t("lorebook.n_entries", { n })),
      mayLink && here.node,
      el("div", { class: "form__actions" }, submitButton(t("lorebook.import_submit"))),
    ],
  })
}

function tellWarnings(brought) {
  return openDialog({
    title: brought.lorebook.name,
    content: () => [
      el("p", { class: "dialog__lead" }, t("lorebook.warnings")),
      el(
        "ul",
        { class: "lore-warnings" },
        sentencesOf(brought).map((it) => el("li", {}, it)),
      ),
    ],
  })
}
