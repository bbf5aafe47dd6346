// Decides where a day begins and which messages form a group: consecutive messages of one author under
// one persona, at most five minutes apart.
import { isSamePersona } from "../personas/personas.js"

const SAME_GROUP_MS = 5 * 60 * 1000

// Takes entries `{ key, authorId, persona, at, ...}` in order. Returns for each `{ startsDay, startsGroup }`.
export function group(entries) {
  return entries.map((entry, index) => {
    const before = entries[index - 1] ?? null
    const startsDay = !before || dayOf(before.at) !== dayOf(entry.at)
    return { startsDay, startsGroup: startsDay || !isSameGroup(before, entry) }
  })
}

function isSameGroup(before, entry) {
  const isSameSpeaker = before.authorId === entry.authorId && isSamePersona(before.persona, entry.persona)
  return isSameSpeaker && Math.abs(entry.at - before.at) <= SAME_GROUP_MS
}

function dayOf(at) {
  const date = new Date(at)
  return `${date.getFullYear()}-${date.getMonth()}-${date.getDate()}`
}
