// What a user may do with the memories of a space, as on the server; used only to show what will work.
// `member` is the user's own membership, or null for an admin who is not a member.
import { may } from "../members/rights.js"

// Returns whether the user may add, change or delete memories about this member. A guest or an observer
// may do so only about themselves.
export function mayChangeAbout(space, member, aboutId) {
  if (space.status === "archived" || !member) return false
  return aboutId === member.id || (member.participation !== "observer" && may(space.my_role, "memories"))
}

// Returns the members about whom the user may write; null stands for nobody.
export function aboutChoices(space, member, ids) {
  return [null, ...ids].filter((id) => mayChangeAbout(space, member, id))
}

// Returns what the user can forget, as bodies of the API.
export function forgettable(space, member, { memberIds, conversationId }) {
  if (space.status === "archived") return []
  const mine = member ? [{ about_membership_id: member.id }] : []
  if (!may(space.my_role, "forget")) return mine
  const others = memberIds.filter((id) => id !== member?.id).map((id) => ({ about_membership_id: id }))
  return [...mine, ...others, { conversation_id: conversationId }, { all: true }]
}

// Returns whether the user may request to learn from messages now. `rules` are the memory settings of the
// space, which a request does not override.
export function mayLearnNow(space, member, rules) {
  if (space.status === "archived" || !rules.enabled || !rules.learn) return false
  return member?.participation !== "observer" && may(space.my_role, "memories")
}

// Returns whether the user may prune the memories of a space and import others.
export function mayReplaceAll(space) {
  return space.status !== "archived" && may(space.my_role, "forget")
}
