// The copilot of one's own seat: whether the AI speaks for me, here, and how many texts it has left.

// "off"; "elsewhere": it speaks for me in another conversation; "going": something is being said, or
// about to be; "held": a paused or failed round keeps it waiting; "resting": it waits to be told to go on.
export function describeCopilot({ seat, conversationId, state }) {
  return { status: statusOf(seat, conversationId, state), left: seat?.copilot_remaining_steps ?? 0 }
}

// While the AI speaks for me here, I write nothing myself.
export function locksComposer({ status }) {
  return status !== "off" && status !== "elsewhere"
}

function statusOf(seat, conversationId, state) {
  if (seat?.copilot_mode !== "full") return "off"
  if (seat.copilot_conversation_id !== conversationId) return "elsewhere"
  if (state === "paused" || state === "failed") return "held"
  return state === "idle" ? "resting" : "going"
}
