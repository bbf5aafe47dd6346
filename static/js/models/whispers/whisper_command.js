// The command `/w Name text` at the composer.
import { nameAt } from "../members/name_at.js"

// `/w` or `/whisper` at the beginning of a text.
const COMMAND = /^\s*\/(?:w|whisper)(?=\s|$)/iu
const COMMA = /^\s*[,，、]\s*/u

// Reads `/w Name, Name text`. Returns null for a text without the command, `{ ids, text }`, or `{ unknown }`
// with the word at which a name was expected. `members` are those that can be chosen. Of several names that
// fit, the longest one counts.
export function readWhisper(text, members) {
  const command = COMMAND.exec(text)
  if (!command) return null
  let rest = text.slice(command[0].length).trimStart()
  const ids = []
  for (;;) {
    const found = nameAt(rest, members)
    if (!found) return { unknown: /^[^\s,，、]*/u.exec(rest)[0] }
    if (!ids.includes(found.id)) ids.push(found.id)
    rest = rest.slice(found.length)
    const comma = COMMA.exec(rest)
    if (!comma) return { ids, text: rest.trimStart() }
    rest = rest.slice(comma[0].length)
  }
}
