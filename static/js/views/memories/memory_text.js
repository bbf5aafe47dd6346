// Texts about a memory: whose it is, about whom, when it was learned, how often it was recalled and by whom,
// and why.
import { t } from "../../base/i18n.js"
import { hundredths } from "../../base/numbers.js"
import { shortTime } from "../../base/time.js"
import { readRecallReasons } from "../../models/memories/recall_reason.js"

export function nameOf({ openRoster: roster }, id) {
  return roster.nameOf(id) ?? t("message.unknown_author")
}

// Returns the words of the question before a memory is deleted.
export function deleteWords() {
  return { title: t("memory.delete_title"), text: t("memory.delete_text"), action: t("delete") }
}

// Returns its kind, whose it is and about whom.
export function subjectOf(store, memory) {
  const { membership_id: ownerId, about_membership_id: aboutId } = memory
  return [t(`memory_kind.${memory.kind}`), ownerText(store, ownerId), aboutId !== null && aboutText(store, aboutId)]
    .filter(Boolean)
    .join(" · ")
}

// Returns when it was learned.
export function historyOf({ origin, created_at, edited }) {
  const at = shortTime(Date.parse(created_at))
  const known = ["person", "imported"].includes(origin) ? t("memory.added", { at }) : t("memory.learned", { at })
  return [known, edited && t("memory.edited")].filter(Boolean).join(" · ")
}

// Returns how often it was recalled and when last, and by whom if that is known.
export function recalledText(store, { recall_count: n, last_recalled_at: last, last_recall: recall }) {
  if (!(n > 0 && last)) return t("memory.never_recalled")
  const at = shortTime(Date.parse(last))
  return recall
    ? t("memory.recalled_by", { n, at, name: nameOf(store, recall.membership_id) })
    : t("memory.recalled", { n, at })
}

// Returns why it was found; null without a reason.
export function reasonOf(because) {
  const reasons = readRecallReasons(because ?? "").map(({ key, values, text }) => (key ? t(key, shown(values)) : text))
  return reasons.length > 0 ? reasons.join(" · ") : null
}

function shown({ score, ...others }) {
  return score === undefined ? others : { ...others, score: hundredths(score) }
}

function ownerText(store, id) {
  if (id === null) return t("memory.of_everyone")
  return id === store.myMembership?.id ? t("memory.of_me") : t("memory.of", { name: nameOf(store, id) })
}

function aboutText(store, id) {
  return id === store.myMembership?.id ? t("memory.about_me") : t("memory.about", { name: nameOf(store, id) })
}
