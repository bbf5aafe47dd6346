// The difference between two texts, word by word: a longest common subsequence.

// A table of this size has 8 MB and is filled within tens of milliseconds. It is sufficient for two
// texts of 2,000 words that have nothing in common.
const MAX_CELLS = 4_000_000

// Scripts without spaces between words are compared by characters.
const CHARACTER = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u.source
// A word, a character or a punctuation mark, with the white space after it; white space at the start.
const TOKEN = new RegExp(`(?:${CHARACTER}|(?:(?!${CHARACTER})[\\p{L}\\p{M}\\p{N}])+|\\S|^)\\s*`, "gu")

// Returns `{ kind, text }` of each part, in order; `kind` is "same", "removed" or "added". The parts that
// are not removed form the text `after`. Differences in white space only are not reported. If the texts
// differ in too many words, the whole differing part is reported as removed and added.
export function wordDiff(before, after, maxCells = MAX_CELLS) {
  const [old, now] = [tokensOf(before), tokensOf(after)]
  const start = commonStart(old, now)
  const end = commonEnd(old, now, start)
  const [oldPart, newPart] = [old.slice(start, old.length - end), now.slice(start, now.length - end)]
  const isTooLarge = (oldPart.length + 1) * (newPart.length + 1) > maxCells
  const gap = start > 0 ? lostSpace(old[start - 1], now[start - 1]) : ""
  const middle = isTooLarge ? [removed(oldPart, gap), added(newPart)] : differing(oldPart, newPart, gap)
  return joined([same(now.slice(0, start)), ...middle, same(now.slice(now.length - end))])
}

function tokensOf(text) {
  const found = text.match(TOKEN) ?? []
  return found.filter((it) => it !== "").map((it) => ({ word: it.trim(), text: it }))
}

function commonStart(old, now) {
  const most = Math.min(old.length, now.length)
  let n = 0
  while (n < most && old[n].word === now[n].word) n += 1
  return n
}

// `start` is the number of common tokens at the start, which are not counted twice.
function commonEnd(old, now, start) {
  const most = Math.min(old.length, now.length) - start
  let n = 0
  while (n < most && old.at(-1 - n).word === now.at(-1 - n).word) n += 1
  return n
}

// Returns the white space after a common word that only the old text has. It belongs to the removed words
// that follow.
function lostSpace(old, now) {
  return now.text === now.word ? old.text.slice(old.word.length) : ""
}

// Reports the removed words of each changed part before the added ones. `gap` is the white space before
// the first removed words.
function differing(old, now, gap) {
  const lengths = commonLengths(old, now)
  const width = now.length + 1
  const found = []
  let [gone, fresh] = [[], []]
  let [i, j] = [0, 0]
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i].word === now[j].word) {
      found.push(removed(gone, gap), added(fresh), same([now[j]]))
      gap = lostSpace(old[i], now[j])
      gone = []
      fresh = []
      i += 1
      j += 1
    } else if (j === now.length || (i < old.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) {
      gone.push(old[i++])
    } else {
      fresh.push(now[j++])
    }
  }
  return [...found, removed(gone, gap), added(fresh)]
}

// Returns the length of the longest common subsequence of `old` from i on and `now` from j on, at
// `i * (now.length + 1) + j`. The bound of the table keeps all lengths below 65,536.
function commonLengths(old, now) {
  const width = now.length + 1
  const lengths = new Uint16Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const at = i * width + j
      const isSame = old[i].word === now[j].word
      lengths[at] = isSame ? lengths[at + width + 1] + 1 : Math.max(lengths[at + width], lengths[at + 1])
    }
  }
  return lengths
}

function same(tokens) {
  return part("same", tokens)
}
function removed(tokens, gap) {
  return part("removed", tokens.length > 0 ? [{ text: gap }, ...tokens] : [])
}
function added(tokens) {
  return part("added", tokens)
}
function part(kind, tokens) {
  return { kind, text: tokens.map((it) => it.text).join("") }
}

// Leaves empty parts out, and joins neighbors of the same kind.
function joined(parts) {
  const found = []
  for (const it of parts.filter(({ text }) => text !== "")) {
    const last = found.at(-1)
    if (last?.kind === it.kind) last.text += it.text
    else found.push({ ...it })
  }
  return found
}
