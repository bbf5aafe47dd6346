// The copilot of the user's membership: its state in a conversation and the number of messages left.

// `status` is "off", "elsewhere" (active in another conversation), "running" (a message is being
// written or queued), "blocked" (the round is paused or has failed) or "waiting" (until it is resumed).
export function describeCopilot({ membership, conversationId, state }) {
  return { status: statusOf(membership, conversationId, state), left: membership?.copilot_remaining_steps ?? 0 }
}

// Whether the user cannot write because the copilot is active in this conversation.
export function locksComposer({ status }) {
  return status !== "off" && status !== "elsewhere"
}

function statusOf(membership, conversationId, state) {
  if (membership?.copilot_mode !== "full") return "off"
  if (membership.copilot_conversation_id !== conversationId) return "elsewhere"
  if (state === "paused" || state === "failed") return "blocked"
  return state === "idle" ? "waiting" : "running"
}
