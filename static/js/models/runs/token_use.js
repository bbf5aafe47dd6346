// What was spent, as the server tells it by space and day, added up for people to look at.
const DAY_MS = 24 * 60 * 60 * 1000
const FIGURES = ["prompt_tokens", "completion_tokens", "runs", "failed"]

// Stands for every space in `byDay`.
export const ALL = "all"

// By which a space is chosen; those that the server tells together have one key.
export function keyOf({ space_id: id }) {
  return id === null ? "rest" : String(id)
}

// One line for each space, who spent most first. `share` is the part of the greatest line.
export function bySpace({ data }) {
  const lines = new Map()
  for (const row of data) {
    const key = keyOf(row)
    if (!lines.has(key)) lines.set(key, { key, name: row.space_name, ...nothing() })
    add(lines.get(key), row)
  }
  return withShares([...lines.values()].sort((a, b) => tokens(b) - tokens(a) || b.runs - a.runs))
}

// One line for each day, the newest first, also where nothing was spent. `choice` is a key, or ALL.
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

// Dates of UTC, such as "2026-11-21".
function daysBetween(from, to) {
  const days = []
  for (let at = Date.parse(to); at >= Date.parse(from); at -= DAY_MS)
    days.push(new Date(at).toISOString().slice(0, 10))
  return days
}
