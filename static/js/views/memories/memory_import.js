// The dialog that imports memories from a file, and shows which lines were not imported.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { sentenceOf } from "../../models/files/import_warnings.js"
import { button } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { explain } from "../components/error_messages.js"
import { chooseFile } from "../components/file_choice.js"

const SHOWN_LINES = 20

// Asks for a file and imports it. Resolves to whether anything may have been stored.
export async function openMemoryImport(parts) {
  const file = await chooseFile("application/x-ndjson,.jsonl")
  if (!file) return false
  await openDialog({
    title: t("memory.import_title"),
    content: (close) => importOf(parts, file, close),
  })
  return true
}

function importOf({ memories, store }, file, close) {
  const node = el("div", { class: "import", "aria-live": "polite" })
  const bar = el("progress", { class: "import__bar", "aria-label": t("memory.importing") })
  replace(node, el("p", { class: "import__text" }, t("memory.importing")), bar)
  memories.importFile(store.openSpace.id, file).then(
    (report) => show(reportOf(report)),
    (error) => show([el("p", { class: "form__error", role: "alert" }, explain(error))]),
  )
  return node

  function show(texts) {
    const done = button(t("close"), { look: "primary", click: () => close() })
    replace(node, ...texts, el("div", { class: "form__actions" }, done))
    done.focus()
  }
}

function reportOf({ n_imported: n, n_duplicates: nDuplicates, n_skipped: nSkipped, n_unlinked: nUnlinked, lines }) {
  const note = (key, count) => count > 0 && el("p", { class: "import__note" }, t(key, { n: count }))
  return [
    el("p", { class: "import__text" }, t("memory.imported", { n })),
    note("memory.import_duplicates", nDuplicates),
    note("memory.import_skipped", nSkipped),
    note("memory.import_unlinked", nUnlinked),
    lines.length > 0 && affectedLines(lines),
  ]
}

function affectedLines(lines) {
  // A file that is imported again has many duplicates, so the other lines are listed first.
  const isDuplicate = ({ code }) => code === "memory_duplicate"
  const shown = [...lines.filter((it) => !isDuplicate(it)), ...lines.filter(isDuplicate)].slice(0, SHOWN_LINES)
  const items = shown.map((it) => el("li", {}, t("chats.line", { n: it.line, reason: sentenceOf(it, it.reason) })))
  return el("details", { class: "import__lines" }, el("summary", {}, t("chats.lines")), el("ul", {}, items))
}
