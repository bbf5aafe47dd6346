// The state of auto mode in a conversation: the number of turns left after the last message of a
// person.

// `status` is "off", "manual" (on, but the reply order is manual), "blocked" (the round is paused, has
// failed or waits for a person), "used_up" (no turns left), "ready" (continues after the next reply) or "running".
export function describeAutoMode({ space, turnsLeft, state }) {
  const n = turnsLeft ?? space?.auto_mode_max_turns ?? 0
  const most = space?.auto_mode_max_turns ?? 0
  return { status: statusOf({ space, n, state }), left: n, most }
}

function statusOf({ space, n, state }) {
  if (!space?.auto_mode_enabled) return "off"
  if (space.reply_order === "manual") return "manual"
  if (state === "paused" || state === "failed" || state === "waiting") return "blocked"
  if (state !== "idle") return "running"
  return n === 0 ? "used_up" : "ready"
}
