// Where auto mode stands in a conversation: the characters go on among themselves for so many turns
// after the last word of a person.

// "off"; "manual": on, but nobody speaks by themselves in this order; "blocked": a paused or failed
// round keeps it waiting; "used_up": its turns are used up; "ready": it goes on after the next reply;
// "running": a reply is on its way.
export function describeAutoMode({ space, turnsLeft, state }) {
  const n = turnsLeft ?? space?.auto_mode_max_turns ?? 0
  const most = space?.auto_mode_max_turns ?? 0
  return { status: statusOf({ space, n, state }), left: n, most }
}

function statusOf({ space, n, state }) {
  if (!space?.auto_mode_enabled) return "off"
  if (space.reply_order === "manual") return "manual"
  if (state === "paused" || state === "failed") return "blocked"
  if (state !== "idle") return "running"
  return n === 0 ? "used_up" : "ready"
}
