// Reactions of a message, and the emoji that were used last.

const N_RECENT = 6
const RECENT_KEY = "troupe.recent_emoji"
const USUAL = ["👍", "❤️", "😂", "😮", "😢", "🎉"]

// Returns `{emoji, count, isMine, names}` for each emoji. `nameOf(membershipId)` returns a name.
export function describeReactions(reactions, myMembershipId, nameOf) {
  return (reactions ?? []).map(({ emoji, membership_ids: ids }) => ({
    emoji,
    count: ids.length,
    isMine: ids.includes(myMembershipId),
    names: ids.map(nameOf),
  }))
}

export function hasReacted(message, emoji, myMembershipId) {
  return describeReactions(message.reactions, myMembershipId, String).some((it) => it.isMine && it.emoji === emoji)
}

// The emoji that this browser used last, filled up with usual ones.
export function recentEmoji(storage) {
  return [...new Set([...stored(storage), ...USUAL])].slice(0, N_RECENT)
}

export function rememberEmoji(storage, emoji) {
  const recent = [emoji, ...stored(storage).filter((it) => it !== emoji)].slice(0, N_RECENT)
  try {
    storage.setItem(RECENT_KEY, JSON.stringify(recent))
  } catch {
    // Without storage the usual emoji are shown.
  }
}

function stored(storage) {
  try {
    const found = JSON.parse(storage.getItem(RECENT_KEY) ?? "[]")
    return Array.isArray(found) ? found.filter((it) => typeof it === "string") : []
  } catch {
    return []
  }
}
