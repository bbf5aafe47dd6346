// How the members are named that see a whisper.
import { t } from "../../base/i18n.js"
import { list } from "../../base/time.js"
import { recipientsOf } from "../../models/whispers/audience.js"

// Returns the name of a member in a sentence; the user is "you".
export function nameOf(roster, myMembershipId, id) {
  if (id === myMembershipId) return t("whisper.you")
  return roster.nameOf(id) ?? t("message.unknown_author")
}

// Returns the names of members in a sentence.
export function namesOf(roster, myMembershipId, ids) {
  return list(ids.map((id) => nameOf(roster, myMembershipId, id)))
}

// Returns to whom an author has whispered; null for a message to everyone.
export function whisperedTo(roster, myMembershipId, audience, authorId) {
  return audience && namesOf(roster, myMembershipId, recipientsOf(audience, authorId))
}
