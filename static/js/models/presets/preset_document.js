// A preset in the editor: the stated values over the defaults. A key without a value is not in the
// document, so that another preset can set it.
export const SAMPLERS = [
  { key: "temperature", least: 0, most: 5, step: 0.05 },
  { key: "top_p", least: 0, most: 1, step: 0.01 },
  { key: "top_k", least: 0, most: 100000, step: 1 },
  { key: "min_p", least: 0, most: 1, step: 0.01 },
  { key: "top_a", least: 0, most: 1, step: 0.01 },
  { key: "typical_p", least: 0, most: 1, step: 0.01 },
  { key: "frequency_penalty", least: -2, most: 2, step: 0.05 },
  { key: "presence_penalty", least: -2, most: 2, step: 0.05 },
  { key: "repetition_penalty", least: 0.1, most: 5, step: 0.01 },
  { key: "max_tokens", least: 1, most: 1000000, step: 1 },
  { key: "context_tokens", least: 64, most: 10000000, step: 1 },
  { key: "seed", least: 0, most: 4294967295, step: 1 },
]

// The samplers that only the servers of local models support. Lists are edited with one item in each line.
export const LOCAL_SAMPLERS = [
  { key: "repetition_range", least: -1, most: 10000000, step: 1 },
  { key: "repetition_slope", least: 0, most: 10, step: 0.05 },
  { key: "tfs", least: 0, most: 1, step: 0.01 },
  { key: "dry_multiplier", least: 0, most: 100, step: 0.05 },
  { key: "dry_base", least: 0, most: 100, step: 0.05 },
  { key: "dry_allowed_length", least: 0, most: 10000, step: 1 },
  { key: "dry_penalty_last_n", least: -1, most: 10000000, step: 1 },
  { key: "xtc_threshold", least: 0, most: 1, step: 0.01 },
  { key: "xtc_probability", least: 0, most: 1, step: 0.01 },
  { key: "mirostat_mode", least: 0, most: 2, step: 1 },
  { key: "mirostat_tau", least: 0, most: 100, step: 0.05 },
  { key: "mirostat_eta", least: 0, most: 1, step: 0.01 },
  { key: "dynatemp_range", least: 0, most: 5, step: 0.05 },
  { key: "dynatemp_exponent", least: 0, most: 10, step: 0.05 },
  { key: "smoothing_factor", least: 0, most: 10, step: 0.01 },
  { key: "top_n_sigma", least: 0, most: 100, step: 0.05 },
]
export const LOCAL_LISTS = ["dry_sequence_breakers", "banned_strings"]
export const LOCAL_TEXTS = ["grammar"]

export const TEXTS = [
  "impersonation_prompt",
  "new_chat_prompt",
  "new_group_chat_prompt",
  "new_example_chat_prompt",
  "group_nudge_prompt",
  "continue_nudge_prompt",
  "assistant_prefill",
  "assistant_impersonation",
  "replace_empty_message",
  "lore_format",
  "scenario_format",
  "personality_format",
  "persona_format",
]

// Slots whose entry has a text of its own.
const WITH_TEXT = ["main", "post_history"]

const ORDER = "prompt_order"

export default class PresetDocument {
  #stated
  #defaults
  #entries
  #before

  constructor(document, defaults) {
    this.#stated = structuredClone(document)
    this.#defaults = defaults
    this.#entries = structuredClone(document[ORDER] ?? defaults[ORDER])
    this.#before = JSON.stringify(this.json)
  }

  // Queries

  get entries() {
    return this.#entries
  }

  get isChanged() {
    return JSON.stringify(this.json) !== this.#before
  }

  get json() {
    return this.#stated
  }

  // Returns the stated value, else the default; null if the model decides.
  value(key) {
    return this.#stated[key] ?? this.#defaults[key] ?? null
  }

  states(key) {
    return this.#stated[key] !== undefined && this.#stated[key] !== null
  }

  entry(id) {
    return this.#entries.find((it) => it.id === id)
  }

  // Actions

  // `null` removes the value.
  set(key, value) {
    if (value === null) delete this.#stated[key]
    else this.#stated[key] = value
  }

  // A text that equals the default is not stored.
  setText(key, text) {
    this.set(key, text === this.#defaults[key] ? null : text)
  }

  // Returns whether the entry has moved.
  moveTo(id, index) {
    const from = this.#entries.findIndex((it) => it.id === id)
    const to = Math.max(0, Math.min(index, this.#entries.length - 1))
    if (from < 0 || from === to) return false
    this.#entries.splice(to, 0, ...this.#entries.splice(from, 1))
    this.#state()
    return true
  }

  moveBy(id, step) {
    return this.moveTo(id, this.#entries.findIndex((it) => it.id === id) + step)
  }

  change(id, fields) {
    Object.assign(this.entry(id), fields)
    this.#state()
  }

  // Adds a custom prompt at the end.
  add(label) {
    const ids = new Set(this.#entries.map((it) => it.id))
    let n = 1
    while (ids.has(`own-${n}`)) n += 1
    const initial = { role: "system", text: "", enabled: true, place: "relative" }
    const entry = { id: `own-${n}`, label, slot: null, ...initial }
    this.#entries.push(entry)
    this.#state()
    return entry
  }

  // Entries with a slot cannot be removed, only turned off.
  remove(id) {
    if (this.entry(id)?.slot) return
    this.#entries = this.#entries.filter((it) => it.id !== id)
    this.#state()
  }

  resetOrder() {
    this.#entries = structuredClone(this.#defaults[ORDER])
    delete this.#stated[ORDER]
  }

  // Private

  #state() {
    this.#stated[ORDER] = this.#entries
  }
}

export function hasText(entry) {
  return !entry.slot || WITH_TEXT.includes(entry.slot)
}

// Returns the position of an entry for a form: `depth` null is its place in the order.
export function placeOf({ place }) {
  const inChat = place?.in_chat
  return inChat ? { depth: inChat.depth, order: inChat.order } : { depth: null, order: 100 }
}

export function placeFrom(depth, order = 100) {
  return depth === null ? "relative" : { in_chat: { depth, order } }
}

// Returns which layer sets each key, the highest first: the settings of the member, its preset, the
// settings of the space, its preset. Each is an object or null.
export function decided({ member, memberPreset, space, spacePreset }) {
  const layers = [
    ["member", member],
    ["member_preset", memberPreset],
    ["space", space],
    ["space_preset", spacePreset],
  ]
  const samplers = [...SAMPLERS, ...LOCAL_SAMPLERS].map(({ key }) => key)
  const keys = [ORDER, ...samplers, ...LOCAL_LISTS, ...LOCAL_TEXTS, "stop", ...TEXTS]
  return keys.flatMap((key) => {
    const found = layers.filter(([, it]) => (it?.[key] ?? null) !== null)
    if (found.length === 0) return []
    const [[from, it], ...others] = found
    return [{ key, value: it[key], from, over: others.map(([name]) => name) }]
  })
}
