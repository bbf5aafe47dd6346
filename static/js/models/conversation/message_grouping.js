// Decides where a day begins and which messages form a group: consecutive messages of one author, at
// most five minutes apart.
const SAME_GROUP_MS = 5 * 60 * 1000

// Takes entries `{ key, authorId, at, ...}` in order. Returns for each `{ startsDay, startsGroup }`.
export function group(entries) {
  return entries.map((entry, index) => {
    const before = entries[index - 1] ?? null
    const startsDay = !before || dayOf(before.at) !== dayOf(entry.at)
    return { startsDay, startsGroup: startsDay || !isSameGroup(before, entry) }
  })
}

function isSameGroup(before, entry) {
  return before.authorId === entry.authorId && Math.abs(entry.at - before.at) <= SAME_GROUP_MS
}

function dayOf(at) {
  const date = new Date(at)
  return `${date.getFullYear()}-${date.getMonth()}-${date.getDate()}`
}
