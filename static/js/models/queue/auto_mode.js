// Where auto mode stands in a conversation: the characters go on among themselves for so many turns
// after the last word of a person.

// "off"; "manual": on, but nobody speaks by themselves in this order; "held": a paused or failed
// round keeps it waiting; "spent": its turns are used up; "ready": it goes on after the next reply;
// "going": a reply is on its way.
export function describeAuto({ space, turnsLeft, state }) {
  const n = turnsLeft ?? space?.auto_mode_max_turns ?? 0
  const most = space?.auto_mode_max_turns ?? 0
  return { status: statusOf({ space, n, state }), left: n, most }
}

function statusOf({ space, n, state }) {
  if (!space?.auto_mode_enabled) return "off"
  if (space.reply_order === "manual") return "manual"
  if (state === "paused" || state === "failed") return "held"
  if (state !== "idle") return "going"
  return n === 0 ? "spent" : "ready"
}
