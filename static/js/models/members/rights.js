// Who may do what, as the server decides it: used only to show what will work.
const RANK = { guest: 0, member: 1, moderator: 2, owner: 3, admin: 4 }

const NEEDS = {
  generate: "member",
  control: "member",
  suggest: "member",
  new_conversation: "member",
  rename_conversation: "member",
  prompt: "member",
  files: "member",
  delete_conversation: "moderator",
  delete_others: "moderator",
  edit_ai: "moderator",
  characters: "moderator",
  people: "moderator",
  decide_tools: "moderator",
  invite: "moderator",
  settings: "moderator",
  hand_over: "owner",
  delete_space: "owner",
}

export function may(role, act) {
  return (RANK[role] ?? -1) >= RANK[NEEDS[act]]
}

// The role as which one acts: an admin manages wherever they sit, and who only reads plays no more
// than a guest does.
export function effectiveRole({ role, isAdmin = false, isObserver = false }) {
  if (role === "owner") return role
  if (isAdmin) return "admin"
  return role === "member" && isObserver ? "guest" : role
}

// Nobody changes the membership of the owner but the owner, by handing the space over.
export function mayManageMember(role, member, isOwn) {
  return !isOwn && member.role !== "owner" && may(role, "people")
}
