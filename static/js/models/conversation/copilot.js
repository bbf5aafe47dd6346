// The copilot of one's own membership: whether the AI speaks for me, here, and how many texts it has left.

// "off"; "elsewhere": it speaks for me in another conversation; "running": something is being said, or
// about to be; "blocked": a paused or failed round keeps it waiting; "waiting": it waits to be told to go on.
export function describeCopilot({ membership, conversationId, state }) {
  return { status: statusOf(membership, conversationId, state), left: membership?.copilot_remaining_steps ?? 0 }
}

// While the AI speaks for me here, I write nothing myself.
export function locksComposer({ status }) {
  return status !== "off" && status !== "elsewhere"
}

function statusOf(membership, conversationId, state) {
  if (membership?.copilot_mode !== "full") return "off"
  if (membership.copilot_conversation_id !== conversationId) return "elsewhere"
  if (state === "paused" || state === "failed") return "blocked"
  return state === "idle" ? "waiting" : "running"
}
