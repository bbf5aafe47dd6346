// Finds the name of a member at the beginning of a text that a person types.

// Letters and digits of scripts that separate words by spaces: two of these next to each other are one word.
const WORD = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Number}_]/u

// Returns the member whose name the text begins with, and the length of the name; null if there is none.
export function nameAt(text, members) {
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

export function fold(text) {
  return text.normalize("NFKC").toLowerCase()
}
