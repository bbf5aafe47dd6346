// Converts a lorebook entry to the flat values of a form and back. An empty value is the default.
const FLAGS = [
  "vectorized",
  "exclude_recursion",
  "prevent_recursion",
  "group_override",
  "ignore_budget",
  "match_persona_description",
  "match_character_description",
  "match_character_personality",
  "match_character_depth_prompt",
  "match_scenario",
  "match_creator_notes",
]
const NUMBERS = ["depth", "scan_depth", "probability", "group_weight", "sticky", "cooldown", "delay"]
// Yes, no, or the setting of the space.
const CHOICES = ["case_sensitive", "match_whole_words", "use_group_scoring"]
const WORDS = ["group", "outlet_name"]

export const AT_DEPTH = "4"
export const OUTLET = "7"
export const POSITIONS = ["0", "1", "2", "3", AT_DEPTH, "5", "6", OUTLET]
export const LOGICS = ["0", "3", "1", "2"]
export const TRIGGERS = ["normal", "continue", "impersonate", "swipe", "regenerate", "quiet"]

// Returns the values of the form.
export function valuesOf(entry) {
  const own = entry.extensions ?? {}
  const filter = own.character_filter ?? {}
  const values = {
    name: entry.name ?? "",
    keys: listed(entry.keys),
    secondary_keys: listed(entry.secondary_keys),
    content: entry.content ?? "",
    enabled: entry.enabled !== false,
    constant: entry.constant === true,
    selective: entry.selective !== false,
    insertion_order: shown(entry.insertion_order),
    priority: shown(entry.priority),
    logic: shown(own.selectiveLogic) || "0",
    position: shown(own.position) || "1",
    role: shown(own.role) || "0",
    use_probability: own.useProbability !== false,
    level: own.delay_until_recursion === true ? "1" : shown(own.delay_until_recursion || 0),
    triggers: own.triggers ?? [],
    filter_names: listed(filter.names),
    filter_tags: listed(filter.tags),
    filter_is_exclude: filter.isExclude === true,
  }
  for (const name of FLAGS) values[name] = own[name] === true
  for (const name of NUMBERS) values[name] = shown(own[name])
  for (const name of CHOICES) values[name] = own[name] === true ? "yes" : own[name] === false ? "no" : ""
  for (const name of WORDS) values[name] = own[name] ?? ""
  return values
}

// Returns the changed fields for the API.
export function changesOf(before, after) {
  const changed = (names) => names.some((name) => !isSame(before[name], after[name]))
  const change = {}
  const extensions = {}
  const put = (into, name, value, from = [name]) => {
    if (changed(from)) into[name] = value()
  }
  for (const name of ["name", "content", "enabled", "constant", "selective"])
    put(change, name, () => after[name])
  for (const name of ["keys", "secondary_keys"]) put(change, name, () => split(after[name]))
  put(change, "insertion_order", () => number(after.insertion_order) ?? 100)
  put(change, "priority", () => number(after.priority))
  put(extensions, "selectiveLogic", () => Number(after.logic), ["logic"])
  put(extensions, "position", () => Number(after.position))
  put(extensions, "role", () => Number(after.role))
  put(extensions, "useProbability", () => after.use_probability, ["use_probability"])
  put(extensions, "delay_until_recursion", () => number(after.level) ?? 0, ["level"])
  put(extensions, "triggers", () => after.triggers)
  for (const name of FLAGS) put(extensions, name, () => after[name])
  for (const name of NUMBERS) put(extensions, name, () => number(after[name]))
  for (const name of CHOICES) put(extensions, name, () => ({ yes: true, no: false })[after[name]] ?? null)
  for (const name of WORDS) put(extensions, name, () => after[name].trim())
  put(extensions, "character_filter", () => filterOf(after), ["filter_names", "filter_tags", "filter_is_exclude"])
  return Object.keys(extensions).length === 0 ? change : { ...change, extensions }
}

// Splits a list of keys at commas, but not inside of a pattern between slashes.
export function split(text) {
  const parts = text.match(/\s*(\/(?:\\.|[^\\/])+\/[gimsuy]*(?=\s*(?:,|$))|[^,]*)(?:,|$)/g) ?? []
  return parts.map((it) => it.replace(/,$/, "").trim()).filter(Boolean)
}

// Returns the entries that contain every word of the search in their name, keys or content.
export function matching(entries, search) {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean)
  const textOf = ({ name, keys, secondary_keys: others, content }) =>
    [name, ...(keys ?? []), ...(others ?? []), content].join("\n").toLocaleLowerCase()
  return entries.filter((entry) => words.every((word) => textOf(entry).includes(word)))
}

function filterOf({ filter_names: names, filter_tags: tags, filter_is_exclude: isExclude }) {
  return { isExclude, names: split(names), tags: split(tags) }
}

function isSame(one, other) {
  return JSON.stringify(one) === JSON.stringify(other)
}

function listed(texts) {
  return (texts ?? []).join(", ")
}

function shown(value) {
  return value === null || value === undefined ? "" : String(value)
}

function number(text) {
  const trimmed = text.trim()
  return trimmed === "" || !Number.isFinite(Number(trimmed)) ? null : Number(trimmed)
}
