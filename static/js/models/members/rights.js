// The permissions of each role, as on the server; used only to show what will work.
const RANK = { guest: 0, member: 1, moderator: 2, owner: 3, admin: 4 }

const NEEDS = {
  generate: "member",
  control: "member",
  suggest: "member",
  narrate: "member",
  new_conversation: "member",
  rename_conversation: "member",
  prompt: "member",
  files: "member",
  memories: "member",
  delete_conversation: "moderator",
  delete_others: "moderator",
  edit_any: "moderator",
  speak_for: "moderator",
  characters: "moderator",
  people: "moderator",
  decide_tools: "moderator",
  invite: "moderator",
  forget: "moderator",
  settings: "moderator",
  hand_over: "owner",
  delete_space: "owner",
}

export function may(role, act) {
  return (RANK[role] ?? -1) >= RANK[NEEDS[act]]
}

// Returns the role that applies: admins manage every space, and observers have the rights of guests.
export function effectiveRole({ role, isAdmin = false, isObserver = false }) {
  if (role === "owner") return role
  if (isAdmin) return "admin"
  return role === "member" && isObserver ? "guest" : role
}

// The membership of the owner cannot be changed by others.
export function mayManageMember(role, member, isOwn) {
  return !isOwn && member.role !== "owner" && may(role, "people")
}
