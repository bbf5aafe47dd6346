// The command `/w Name text` at the composer.

// `/w` or `/whisper` at the beginning of a text.
const COMMAND = /^\s*\/(?:w|whisper)(?=\s|$)/iu
const COMMA = /^\s*[,，、]\s*/u
// Letters and digits of scripts that separate words by spaces: two of these next to each other are one word.
const WORD = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Number}_]/u

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

// Returns the member whose name the text begins with, and the length of the name; null if there is none.
function nameAt(text, members) {
  const at = text.startsWith("@") ? 1 : 0
  const names = members.flatMap(({ id, display_name: name, aliases = [] }) =>
    [name, ...aliases].map((it) => ({ id, length: at + lengthOf(it, text.slice(at)) })),
  )
  const found = names.filter(({ length }) => length > at && endsWord(text, length))
  return found.reduce((longest, it) => (it.length > (longest?.length ?? 0) ? it : longest), null)
}

// Returns how many characters of the text are this name, in any case and width; 0 if it does not begin
// with the name.
function lengthOf(name, text) {
  const wanted = fold(name)
  if (wanted === "") return 0
  const longest = Math.min(text.length, wanted.length * 3)
  for (let length = longest; length > 0; length -= 1) {
    const part = text.slice(0, length)
    if (!/\s$/u.test(part) && fold(part) === wanted) return length
  }
  return 0
}

function endsWord(text, length) {
  return !(WORD.test(text[length - 1]) && WORD.test(text[length] ?? ""))
}

function fold(text) {
  return text.normalize("NFKC").toLowerCase()
}
