// Mentions in a text that is being written: the `@` before the caret, the members that fit, and the ids of
// the chosen members whose name is still in the text.

const LONGEST_QUERY = 60
// Letters and digits of scripts that separate words by spaces: after these, `@` is part of an address.
const WORD_BEFORE = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Number}_.]$/u

// Returns `{ start, query }` of the mention that is being written at the caret, or null.
export function queryAt(text, caret) {
  const before = text.slice(0, caret)
  const start = before.lastIndexOf("@")
  if (start < 0 || WORD_BEFORE.test(before.slice(0, start))) return null
  const query = before.slice(start + 1)
  if (query.length > LONGEST_QUERY || query.includes("\n") || query.startsWith(" ")) return null
  return { start, query }
}

// Returns the members whose name or alias contains the query, those whose name begins with it first.
export function matching(members, query) {
  const part = fold(query)
  const ranked = members.map((member) => ({ member, rank: rankOf(member, part) }))
  return ranked
    .filter(({ rank }) => rank < NONE)
    .sort((a, b) => a.rank - b.rank)
    .map(({ member }) => member)
}

// Replaces the query by the name of the chosen member. Returns the text and the position of the caret.
export function insertMention(text, { start, query }, name) {
  const end = start + 1 + query.length
  const space = /^[\s\p{P}]/u.test(text.slice(end)) ? "" : " "
  const inserted = `@${name}${space}`
  return { text: text.slice(0, start) + inserted + text.slice(end), caret: start + inserted.length }
}

// Returns the ids of the chosen members whose `@name` is in the text, in its order. Members with the same
// name take the places of this name in the order in which they were chosen.
export function mentionedIds(text, chosen) {
  const found = []
  const next = new Map()
  for (const { id, name } of chosen) {
    const at = text.indexOf(`@${name}`, next.get(name) ?? 0)
    if (at < 0) continue
    next.set(name, at + 1 + name.length)
    found.push({ id, at })
  }
  const ids = found.sort((a, b) => a.at - b.at).map(({ id }) => id)
  return [...new Set(ids)]
}

const NONE = 3

function rankOf({ display_name: name, aliases = [] }, part) {
  const folded = fold(name)
  if (folded.startsWith(part)) return 0
  if (folded.includes(part)) return 1
  return aliases.some((alias) => fold(alias).includes(part)) ? 2 : NONE
}

function fold(text) {
  return text.normalize("NFKC").toLowerCase()
}
