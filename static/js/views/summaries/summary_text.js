// Texts about a summary: which messages it covers, its state, who wrote it, and its version.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { shortTime } from "../../base/time.js"
import { paths } from "../../router.js"

// Returns the range of the messages that a summary covers.
export function rangeText({ from_seq: from, to_seq: to }) {
  return from === to ? t("summary.one_message", { from }) : t("summary.range", { from, to })
}

// A link to the first of these messages. It is looked up when the link is followed; until then it leads
// to the conversation.
export function rangeLink(summary, follow) {
  const click = (event) => {
    event.preventDefault()
    follow(summary)
  }
  const href = paths.conversation(summary.conversation_id)
  return el("a", { class: "summary__range", href, "data-act": "range", on: { click } }, rangeText(summary))
}

// Returns who wrote a summary, and when.
export function originText({ openRoster: roster }, { origin, model, created_by: userId, created_at: at }) {
  const when = { at: shortTime(Date.parse(at)) }
  if (origin === "model") return model ? t("summary.by_model", { model, ...when }) : t("summary.by_a_model", when)
  const name = roster.membershipOf(userId)?.display_name
  return name ? t("summary.by_person", { name, ...when }) : t("summary.by_a_person", when)
}
