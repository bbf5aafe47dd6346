// Reads the position of the text of an activated entry in the prompt.
const KEYS = {
  before_char: "lorebook_choice.position_0",
  after_char: "lorebook_choice.position_1",
  personality: "lorebook_position.personality",
  scenario: "lorebook_position.scenario",
  note_top: "lorebook_choice.position_2",
  note_bottom: "lorebook_choice.position_3",
  at_depth: "lorebook_position.at_depth",
  before_examples: "lorebook_choice.position_5",
  after_examples: "lorebook_choice.position_6",
  outlet: "lorebook_position.outlet",
}

const ROLES = { system: "lorebook_choice.role_0", user: "lorebook_choice.role_1", assistant: "lorebook_choice.role_2" }

// Returns `{ key, values, role }`, or null for an unknown position. `role` is the key of the label of the role, or
// null if the text is not among the messages.
export function readLorebookPosition({ type, depth = null, role = null, name = "" }) {
  const key = KEYS[type]
  return key ? { key, values: { depth, name }, role: ROLES[role] ?? null } : null
}
