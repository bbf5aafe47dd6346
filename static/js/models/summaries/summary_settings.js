// The settings of the summaries of a space: reads and writes them.
export const NUMBERS = {
  chunk_messages: { usual: 30, least: 10, most: 100 },
  max_tokens: { usual: 600, least: 100, most: 2000 },
}

// `model` is `{ provider_id, model }`, or null for the default model.
const USUAL = {
  enabled: true,
  model: null,
  ...Object.fromEntries(Object.entries(NUMBERS).map(([name, it]) => [name, it.usual])),
}

// Returns the settings of summaries; missing and malformed values become the defaults.
export function readSummarySettings(settings) {
  const stated = Object.entries(settings?.memory?.summaries ?? {}).filter(([name, value]) => isValid(name, value))
  return { ...USUAL, ...Object.fromEntries(stated) }
}

// Returns whether the conversations of a space are summarized: both the memory and the summaries are on.
export function hasSummaries(settings) {
  return settings?.memory?.enabled !== false && readSummarySettings(settings).enabled
}

// Returns the settings of the space with other settings of summaries. Only values that differ from the defaults are stored; unknown
// ones are kept.
export function withSummarySettings(settings, rules) {
  const { memory, ...others } = settings ?? {}
  const { summaries: known, ...otherMemory } = memory ?? {}
  const unknown = Object.entries(known ?? {}).filter(([name]) => !(name in USUAL))
  const stated = Object.entries(rules).filter(([name, value]) => value !== USUAL[name])
  const summaries = Object.fromEntries([...unknown, ...stated])
  const stored = isEmpty(summaries) ? otherMemory : { ...otherMemory, summaries }
  return isEmpty(stored) ? others : { ...others, memory: stored }
}

// Returns the number of a field, or null if it is not allowed; an empty field is the default.
export function numberOf(name, text) {
  const { usual, least, most } = NUMBERS[name]
  if (text.trim() === "") return usual
  const number = Number(text)
  return Number.isInteger(number) && number >= least && number <= most ? number : null
}

function isValid(name, value) {
  if (name !== "model") return name in USUAL && typeof value === typeof USUAL[name]
  return typeof value?.provider_id === "number" && typeof value.model === "string"
}

function isEmpty(values) {
  return Object.keys(values).length === 0
}
