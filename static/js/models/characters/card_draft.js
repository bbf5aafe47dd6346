// Converts a card document to the fields of a form and back. Unknown parts of the document are kept,
// and unchanged fields are not written.

const TEXTS = [
  "name",
  "nickname",
  "description",
  "personality",
  "scenario",
  "first_mes",
  "mes_example",
  "system_prompt",
  "post_history_instructions",
  "creator_notes",
  "creator",
  "character_version",
]
const LISTS = ["alternate_greetings", "group_only_greetings", "tags"]
const USUAL_DEPTH = 4

// Returns the fields of a card document for the form.
export function fieldsOf(document) {
  const data = dataOf(document)
  const texts = Object.fromEntries(TEXTS.map((key) => [key, textOf(data[key])]))
  const lists = Object.fromEntries(LISTS.map((key) => [key, listOf(data[key])]))
  return { ...texts, ...lists, ...extensionsOf(data.extensions ?? {}) }
}

// Returns the document with these fields.
export function withFields(document, fields) {
  const before = fieldsOf(document)
  const changed = Object.keys(before).filter((key) => !isSame(before[key], fields[key]))
  if (changed.length === 0) return document
  const next = structuredClone(document)
  const data = dataOf(next)
  for (const key of changed) {
    if (key === "talkativeness" || key === "depth_prompt") writeExtension(data, key, fields[key])
    else data[key] = fields[key]
    // Some cards repeat fields outside of `data` for older tools.
    if (data !== next && typeof next[key] === "string") next[key] = fields[key]
  }
  return next
}

function dataOf(document) {
  return typeof document.data === "object" && document.data !== null ? document.data : document
}

function extensionsOf({ talkativeness, depth_prompt: note }) {
  const stated = talkativeness === null || talkativeness === "" ? NaN : Number(talkativeness)
  return {
    talkativeness: Number.isFinite(stated) ? Math.min(1, Math.max(0, stated)) : null,
    depth_prompt: {
      prompt: textOf(note?.prompt),
      depth: Number.isInteger(Number(note?.depth ?? USUAL_DEPTH)) ? Number(note?.depth ?? USUAL_DEPTH) : USUAL_DEPTH,
      role: ["user", "assistant"].includes(note?.role) ? note.role : "system",
    },
  }
}

function writeExtension(data, key, value) {
  data.extensions ??= {}
  if (key === "depth_prompt") data.extensions[key] = { ...data.extensions[key], ...value }
  else if (value === null) delete data.extensions[key]
  else data.extensions[key] = value
}

function textOf(value) {
  return typeof value === "string" ? value : ""
}

function listOf(value) {
  return Array.isArray(value) ? value.filter((it) => typeof it === "string") : []
}

function isSame(one, other) {
  return JSON.stringify(one) === JSON.stringify(other)
}
