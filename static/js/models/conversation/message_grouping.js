// Decides where a day begins and which messages form a group: consecutive messages of one author under
// one persona or as narrator, and for one audience, at most five minutes apart.
import { isSamePersona } from "../personas/personas.js"
import { audienceOf, isSameAudience } from "../whispers/audience.js"

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
  const isSameSpeaker =
    before.authorId === entry.authorId &&
    (before.isNarrator ?? false) === (entry.isNarrator ?? false) &&
    isSamePersona(before.persona, entry.persona)
  const isForSame = isSameAudience(audienceOf(before), audienceOf(entry))
  return isSameSpeaker && isForSame && Math.abs(entry.at - before.at) <= SAME_GROUP_MS
}

function dayOf(at) {
  const date = new Date(at)
  return `${date.getFullYear()}-${date.getMonth()}-${date.getDate()}`
}
