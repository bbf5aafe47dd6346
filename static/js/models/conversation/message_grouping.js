// Where a day begins and which messages belong under one name: the same author, at most five
// minutes after the one before, nothing between them.
const SAME_GROUP_MS = 5 * 60 * 1000

// Takes entries `{ key, authorId, at, ...}` in order, returns for each `{ startsDay, startsGroup }`.
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
