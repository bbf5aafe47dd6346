// The memory settings of a space: reads them from the settings and writes them back.
export const FLAGS = ["enabled", "learn", "recall"]
export const NUMBERS = {
  top_k: { usual: 5, least: 1, most: 20, step: 1 },
  threshold: { usual: 0.6, least: 0, most: 1, step: 0.05 },
  token_budget: { usual: 512, least: 0, most: 4096, step: 1 },
  max_memories: { usual: 100000, least: 1, most: 100000, step: 1 },
}

const USUAL = {
  ...Object.fromEntries(FLAGS.map((name) => [name, true])),
  ...Object.fromEntries(Object.entries(NUMBERS).map(([name, it]) => [name, it.usual])),
  // The default model.
  model: null,
  // The embedding model: `{ provider_id, model }`, or null for that of the default provider.
  embedding: null,
}

// Returns the rules of these settings; missing values are the defaults.
export function readMemorySettings(settings) {
  const stated = Object.entries(settings?.memory ?? {}).filter(
    ([name, value]) => (name === "embedding" ? isModel(value) : name in USUAL && typeof value === typeof USUAL[name]),
  )
  return { ...USUAL, ...Object.fromEntries(stated), model: readModel(settings?.memory?.model) }
}

function isModel(value) {
  return typeof value?.provider_id === "number" && typeof value.model === "string"
}

// Returns the settings with other rules. Only values that differ from the defaults are stored; unknown
// ones are kept.
export function withMemorySettings(settings, rules) {
  const { memory: known, ...others } = settings ?? {}
  const unknown = Object.entries(known ?? {}).filter(([name]) => !(name in USUAL))
  const stated = Object.entries(rules).filter(([name, value]) => value !== USUAL[name])
  const stored = Object.fromEntries([...unknown, ...stated])
  return Object.keys(stored).length === 0 ? others : { ...others, memory: stored }
}

// Returns the number of a field, or null if it is not allowed; an empty field is the default.
export function numberOf(name, text) {
  const { usual, least, most, step } = NUMBERS[name]
  if (text.trim() === "") return usual
  const number = Number(text)
  const isAllowed = number >= least && number <= most && (step < 1 || Number.isInteger(number))
  return isAllowed ? number : null
}

// A stored model without a name is the one in the settings of the provider.
function readModel(stored) {
  if (!Number.isInteger(stored?.provider_id)) return null
  const model = typeof stored.model === "string" ? stored.model.trim() : ""
  return { provider_id: stored.provider_id, ...(model === "" ? {} : { model }) }
}
