// Why a speaker was chosen. The server says it in English, for programs and logs too; here the
// sentences it has are known again, so that they can be said in another language.
const SENTENCES = [
  [/^forced by (?<name>.+)$/s, "because.forced"],
  [/^put in the queue by (?<name>.+)$/s, "because.put"],
  [/^mentioned "(?<name>.+)"$/s, "because.mentioned"],
  [/^copilot, steps left: (?<n>\d+)$/, "because.copilot"],
  [/^next by position$/, "because.next"],
  [/^next in rotation$/, "because.rotation"],
  [/^drawn at random$/, "because.random"],
  [/^drawn from those who have not spoken yet$/, "because.not_spoken"],
  [/^drew (?<draw>[\d.]+) ≤ (?<most>[\d.]+)$/, "because.drew"],
]

// A count chooses between one and several.
function numbersIn({ n, ...rest } = {}) {
  return n === undefined ? rest : { ...rest, n: Number(n) }
}

// Answers `{ key, values }`, or null for a sentence that is new here.
export function readReason(text) {
  for (const [pattern, key] of SENTENCES) {
    const match = pattern.exec(text)
    if (match) return { key, values: numbersIn(match.groups) }
  }
  return null
}
