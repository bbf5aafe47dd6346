// The import of a lorebook file: a preview, an option to link it to the open space, and warnings.
import { bdi, el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { looksLikeLorebook, previewOf } from "../../models/lorebooks/lorebook_file.js"
import { may } from "../../models/members/rights.js"
import { sentencesOf } from "../../models/files/import_warnings.js"
import { submitButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { check, form } from "../components/form.js"

// Returns the importer for lorebook files.
export function lorebookImporter(parts) {
  return {
    name: "lorebook",
    looksLike: (file, head, json) => looksLikeLorebook(json),
    open: (file, json) => openLorebookImportDialog(parts, file, json),
  }
}

async function openLorebookImportDialog(parts, file, json) {
  const imported = await openDialog({
    title: t("lorebook.import"),
    content: (close) => importForm(parts, { file, ...previewOf(json, file.name) }, close),
  })
  if (!imported) return
  parts.toasts.show(t("lorebook.imported", { name: imported.lorebook.name }))
  parts.lorebooks.notifyImported()
  if (imported.warnings.length > 0) await showWarnings(imported)
}

function importForm(parts, { file, name, n }, close) {
  const { openSpace: space } = parts.store
  const here = check({ label: t("lorebook.use_here", { space: space?.name ?? "" }), checked: true })
  const mayLink = space && may(space.my_role, "settings")
  const submit = async () => {
    const imported = await parts.lorebooks.importFile(file)
    const target = { kind: "spaces", id: space?.id }
    if (mayLink && here.control.checked)
      await parts.lorebooks.link(target, [...(await parts.lorebooks.linked(target)), imported.lorebook])
    close(imported)
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

function showWarnings(imported) {
  return openDialog({
    title: imported.lorebook.name,
    content: () => [
      el("p", { class: "dialog__lead" }, t("lorebook.warnings")),
      el(
        "ul",
        { class: "lore-warnings" },
        sentencesOf(imported).map((it) => el("li", {}, it)),
      ),
    ],
  })
}
