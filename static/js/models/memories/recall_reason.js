// Reads why a memory was found, such as "pinned; matched dog, pixel; vector 0.71".

// Returns `{ key, values, text }` of each reason; the key of an unknown one is null.
export function readRecallReasons(because) {
  return because.split("; ").filter(Boolean).map((text) => ({ text, ...read(text) }))
}

function read(text) {
  const words = /^matched (.+)$/.exec(text)
  if (words) return { key: "memory.because_words", values: { words: words[1] } }
  const score = /^vector (\d\.\d+)$/.exec(text)
  if (score) return { key: "memory.because_meaning", values: { score: Number(score[1]) } }
  return text === "pinned" ? { key: "memory.because_pinned", values: {} } : { key: null, values: {} }
}

// Splits the memories of a run's prompt: those that it contained, in their order, and those that came
// close.
export function splitRecalled(all) {
  const recalled = all.filter((it) => it.rank !== null).sort((a, b) => a.rank - b.rank)
  return { recalled, close: all.filter((it) => it.rank === null) }
}

// Returns the score that is compared with the threshold: the better one of both searches.
export function bestScore({ vector_score: vector, text_score: text }) {
  return Math.max(vector ?? 0, text)
}
