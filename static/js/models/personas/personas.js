// @ts-check
// The personas of the user: which one the next post is written under, the persona that the beginning of a
// text names, and the values of the form of a persona.

// The choice of no persona, although the user has a default one.
export const NO_PERSONA = "none"

// Where the description of a persona is in a prompt.
export const AT_DEPTH = "at_depth"
export const POSITIONS = ["in_prompt", "note_top", "note_bottom", AT_DEPTH, "none"]
export const ROLES = ["system", "user", "assistant"]

const PREFIX = "="
const DEFAULTS = { name: "", title: "", description: "", position: "in_prompt", depth: 2, role: "system" }

// Returns the texts of the form; `persona` null: a new one.
export function formValues(persona) {
  const values = Object.keys(DEFAULTS).map((key) => [key, String(persona?.[key] ?? DEFAULTS[key])])
  return Object.fromEntries(values)
}

// Returns the fields for the API. An empty depth is the default one; the depth and the role are left out where
// they do not apply.
export function readForm({ depth, role, ...others }) {
  if (others.position !== AT_DEPTH) return others
  return { ...others, depth: depth.trim() === "" ? DEFAULTS.depth : Number(depth), role }
}

// `all` is null until the personas are loaded. `choice` is `NO_PERSONA` or null. Returns the persona, null if
// there is none, or undefined if it is not known here, so that the server chooses it.
export function currentPersona({ all, activeId, choice }) {
  if (choice === NO_PERSONA && !activeId) return null
  if (!all) return undefined
  return all.find(({ id }) => id === activeId) ?? all.find((it) => it.is_default) ?? null
}

// Finds `=name text` with the longest name, in any case. Returns `{ persona, text }` or null.
export function readPrefix(text, all) {
  if (!text.startsWith(PREFIX)) return null
  const fold = (it) => it.normalize("NFKC").toLowerCase()
  let found = null
  for (const persona of all ?? []) {
    const end = PREFIX.length + persona.name.length
    if (fold(text.slice(PREFIX.length, end)) !== fold(persona.name)) continue
    const rest = text.slice(end)
    const isLonger = !found || persona.name.length > found.persona.name.length
    if (isLonger && (rest === "" || /^\s/.test(rest))) found = { persona, text: rest.trimStart() }
  }
  return found
}

// Whether two messages were posted under the same persona.
export function isSamePersona(one, other) {
  return (one?.id ?? null) === (other?.id ?? null) && (one?.name ?? null) === (other?.name ?? null)
}
