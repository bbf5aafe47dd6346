// The World Info settings of a space: reads them from the settings and writes them back.
export const NUMBERS = {
  scan_depth: { usual: 2, most: 1000 },
  token_budget_percent: { usual: 25, most: 100 },
  token_budget_cap: { usual: 0, most: 10_000_000 },
  max_steps: { usual: 3, most: 10 },
  min_activations: { usual: 0, most: 1000 },
  min_activations_depth: { usual: 0, most: 1000 },
}
export const FLAGS = {
  recursive: false,
  case_sensitive: false,
  whole_words: false,
  ascii_words: false,
  include_names: true,
  group_scoring: false,
}
export const STRATEGIES = ["character_lore_first", "global_lore_first", "sorted_evenly"]

const USUAL = {
  ...Object.fromEntries(Object.entries(NUMBERS).map(([name, it]) => [name, it.usual])),
  ...FLAGS,
  insertion_strategy: STRATEGIES[0],
}

// Returns the rules of these settings; missing values are the defaults.
export function readLorebookSettings(settings) {
  const given = settings?.world_info ?? {}
  const stated = Object.entries(given).filter(([name, value]) => name in USUAL && value !== null)
  return { ...USUAL, ...Object.fromEntries(stated) }
}

// Returns the settings with other rules. Only values that differ from the defaults are stored; unknown
// ones are kept.
export function withLorebookSettings(settings, rules) {
  const { world_info: known, ...others } = settings ?? {}
  const unknown = Object.entries(known ?? {}).filter(([name]) => !(name in USUAL))
  const stated = Object.entries(rules).filter(([name, value]) => value !== USUAL[name])
  const stored = Object.fromEntries([...unknown, ...stated])
  return Object.keys(stored).length === 0 ? others : { ...others, world_info: stored }
}

// Returns the number of a field; an empty field is the default.
export function numberOf(name, text) {
  return text.trim() === "" ? NUMBERS[name].usual : Number(text)
}
