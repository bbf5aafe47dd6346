// Splits plain streamed text into paragraphs and spans with emphasis: `*so*`, `_so_` and `**so**`. An
// unmatched mark is shown as it is. Returns values, never markup: the rendered message comes from the
// server when it is committed.
const MARKED = /(\*\*|__)(?=\S)([^*_\n]*?\S)\1|([*_])(?=\S)([^*_\n]*?\S)\3/g

export function splitParagraphs(text) {
  return text.split(/\n{2,}/).filter((part) => part !== "")
}

// Returns the lines of a paragraph; each is a list of `{ text, mark }`, where `mark` is "em", "strong"
// or null.
export function lines(paragraph) {
  return paragraph.split("\n").map(spans)
}

function spans(line) {
  const found = []
  let end = 0
  for (const match of line.matchAll(MARKED)) {
    if (isInsideWord(line, match)) continue
    if (match.index > end) found.push({ text: line.slice(end, match.index), mark: null })
    found.push(match[1] ? { text: match[2], mark: "strong" } : { text: match[4], mark: "em" })
    end = match.index + match[0].length
  }
  if (end < line.length) found.push({ text: line.slice(end), mark: null })
  return found
}

// `snake_case_name` has no emphasis.
function isInsideWord(line, match) {
  if (!match[0].startsWith("_")) return false
  const before = line[match.index - 1] ?? " "
  const after = line[match.index + match[0].length] ?? " "
  return /\w/.test(before) || /\w/.test(after)
}
