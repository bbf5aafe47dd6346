// Who sees the reply that is triggered while the newest message is a whisper.
import { t } from "../../base/i18n.js"
import { namesOf } from "./recipient_names.js"

// Returns the audience of the newest message, which a triggered reply has too; null: everyone.
export function inheritedAudience({ openConversation }) {
  return openConversation?.timeline.tail?.audience ?? null
}

// Returns the label of the button that triggers a member, with those who will see the reply. `audience` is
// that of the reply, if the member belongs to it.
export function triggerLabel(store, { id, name, isMuted = false }, audience) {
  const label = isMuted ? t("queue.trigger_muted", { name }) : t("queue.trigger", { name })
  if (!inheritedAudience(store)) return label
  return t("queue.trigger_for", { label, text: visibleTo(store, audience?.includes(id) ? audience : null) })
}

// Returns the sentence about who sees the reply.
export function visibleTo({ openRoster: roster, myMembership }, audience) {
  if (!audience) return t("whisper.reply_everyone")
  const others = audience.filter((id) => id !== myMembership?.id)
  const ids = others.length === audience.length ? audience : [...others, myMembership.id]
  return t("whisper.reply_only", { names: namesOf(roster, myMembership?.id, ids) })
}
