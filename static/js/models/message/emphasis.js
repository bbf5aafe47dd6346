// Splits plain streamed text into paragraphs and spans with emphasis: `*so*`, `_so_` and `**so**`, but
// not the underscores of `snake_case_name`. An unmatched mark is shown as it is. Returns values, never
// markup: the rendered message comes from the server when it is committed.
const MARKED = /(\*\*?)(?=\S)([^*\n]*?[^*\s])\1|\b(__?)(?=\S)([^_\n]*?[^_\s])\3(?!\w)/g

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
    if (match.index > end) found.push({ text: line.slice(end, match.index), mark: null })
    const mark = match[1] ?? match[3]
    found.push({ text: match[2] ?? match[4], mark: mark.length === 2 ? "strong" : "em" })
    end = match.index + match[0].length
  }
  if (end < line.length) found.push({ text: line.slice(end), mark: null })
  return found
}
