// Who may do what, as the server decides it: used only to show what will work.
const RANK = { guest: 0, member: 1, moderator: 2, owner: 3, admin: 4 }

const NEEDS = {
  generate: "member",
  control: "member",
  new_conversation: "member",
  rename_conversation: "member",
  prompt: "member",
  delete_conversation: "moderator",
  delete_others: "moderator",
  edit_ai: "moderator",
  cast: "moderator",
  settings: "moderator",
  delete_space: "owner",
}

export function may(role, act) {
  return (RANK[role] ?? -1) >= RANK[NEEDS[act]]
}
