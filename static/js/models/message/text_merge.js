// Merges two texts that were made from the same one, line by line.

// Returns `{ text, isClean }`. If both sides changed the same lines, these lines are there twice: first
// theirs, then mine.
export function mergeTexts(base, mine, theirs) {
  if (mine === theirs || theirs === base) return { text: mine, isClean: true }
  if (mine === base) return { text: theirs, isClean: true }
  const [old, own, other] = [base, mine, theirs].map((it) => it.split("\n"))
  const changes = [changeOf(old, own), changeOf(old, other)]
  const [first, second] = changes.toSorted((a, b) => a.from - b.from || a.to - b.to)
  if (first.to <= second.from && first.from < second.from) {
    const lines = [
      ...old.slice(0, first.from),
      ...first.lines,
      ...old.slice(first.to, second.from),
      ...second.lines,
      ...old.slice(second.to),
    ]
    return { text: lines.join("\n"), isClean: true }
  }
  const from = first.from
  const to = Math.max(first.to, second.to)
  const [ours, theirPart] = changes.map((it) => expand(it, old, from, to))
  const lines = [...old.slice(0, from), ...theirPart, ...ours, ...old.slice(to)]
  return { text: lines.join("\n"), isClean: false }
}

// Returns which lines of `old` were replaced by which lines.
function changeOf(old, next) {
  const shorter = Math.min(old.length, next.length)
  let from = 0
  while (from < shorter && old[from] === next[from]) from += 1
  let kept = 0
  while (kept < shorter - from && old[old.length - 1 - kept] === next[next.length - 1 - kept]) kept += 1
  return { from, to: old.length - kept, lines: next.slice(from, next.length - kept) }
}

// Returns the lines that a change makes of a larger part of the old text.
function expand({ from, to, lines }, old, start, end) {
  return [...old.slice(start, from), ...lines, ...old.slice(to, end)]
}
