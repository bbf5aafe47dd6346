// Sums the token use that the server reports by space and day.
const DAY_MS = 24 * 60 * 60 * 1000
const FIGURES = ["prompt_tokens", "completion_tokens", "runs", "failed"]

// Selects all spaces in `byDay`.
export const ALL = "all"

// Returns the key of a space; the spaces that are reported together share one.
export function keyOf({ space_id: id }) {
  return id === null ? "rest" : String(id)
}

// Returns one line for each space, the largest first. `share` is relative to the largest line.
export function bySpace({ data }) {
  const lines = new Map()
  for (const row of data) {
    const key = keyOf(row)
    if (!lines.has(key)) lines.set(key, { key, name: row.space_name, ...nothing() })
    add(lines.get(key), row)
  }
  return withShares([...lines.values()].sort((a, b) => tokens(b) - tokens(a) || b.runs - a.runs))
}

// Returns one line for each day, the newest first, also for days without use. `choice` is a key or ALL.
export function byDay({ data, from, to }, choice = ALL) {
  const lines = new Map(daysBetween(from, to).map((day) => [day, { day, ...nothing() }]))
  for (const row of data) {
    if (choice === ALL || keyOf(row) === choice) add(lines.get(row.day) ?? nothing(), row)
  }
  return withShares([...lines.values()])
}

function nothing() {
  return Object.fromEntries(FIGURES.map((name) => [name, 0]))
}

function add(line, row) {
  for (const name of FIGURES) line[name] += row[name]
}

function tokens(line) {
  return line.prompt_tokens + line.completion_tokens
}

function withShares(lines) {
  const greatest = Math.max(1, ...lines.map(tokens))
  return lines.map((line) => ({ ...line, share: tokens(line) / greatest }))
}

// Dates in UTC, such as "2026-11-21".
function daysBetween(from, to) {
  const days = []
  for (let at = Date.parse(to); at >= Date.parse(from); at -= DAY_MS)
    days.push(new Date(at).toISOString().slice(0, 10))
  return days
}
