// The parts of the preview of a chat file: its conversations, and what the import changes or leaves out.
import { bdi, el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { sentenceOf, sentencesOf } from "../../models/files/import_warnings.js"

const MAX_CHATS = 30
const MAX_LINES = 20

// Returns the conversations that an import would create, with what belongs to each.
export function conversationList({ conversations, n_conversations: n }) {
  const shown = conversations.slice(0, MAX_CHATS)
  return el(
    "section",
    { class: "import__chats", "aria-label": t("chats.new_conversations") },
    el("h4", {}, t("chats.new_conversations")),
    el("ul", {}, shown.map((it) => el("li", {}, bdi(it.title || t("chats.untitled")), " · ", facts(it)))),
    n > shown.length && el("p", { class: "import__note" }, t("chats.more_conversations", { n: n - shown.length })),
  )
}

// Returns the notes about an import or its preview.
export function reportNotes(report) {
  const { n_skipped: nSkipped, n_repaired: nRepaired, lines } = report
  return [
    nSkipped > 0 && el("p", { class: "import__note" }, t("chats.skipped", { n: nSkipped })),
    nRepaired > 0 && el("p", { class: "import__note" }, t("chats.repaired", { n: nRepaired })),
    ...sentencesOf(report).map((it) => el("p", { class: "import__note" }, it)),
    lines.length > 0 && troubles(lines),
  ]
}

function facts({ n_messages: n, lorebook, author_note: note, scenario, n_variables: nVariables }) {
  const known = [
    t("chats.message_count", { n }),
    lorebook && t("chats.with_lorebook", { name: lorebook.name, n: lorebook.n_entries }),
    nVariables > 0 && t("chats.with_variables", { n: nVariables }),
  ]
  const texts = [
    [t("author_note.title"), note],
    [t("card.scenario"), scenario],
  ]
  return [
    known.filter(Boolean).join(" · "),
    texts.map(([label, text]) => text && el("p", { class: "import__note" }, `${label}: `, bdi(text))),
  ]
}

function troubles(lines) {
  const items = lines
    .slice(0, MAX_LINES)
    .map((it) => el("li", {}, t("chats.line", { n: it.line, reason: sentenceOf(it, it.reason) })))
  return el("details", { class: "import__lines" }, el("summary", {}, t("chats.lines")), el("ul", {}, items))
}
