// A summary of a conversation: its limits and its state, and what a change of it sends.
import { mayChangeAbout } from "../memories/memory_rights.js"

// The limits of the server.
export const MAX_CONTENT_CHARS = 8000
export const MAX_FACTS = 20
export const MAX_FACT_CHARS = 300

// Splits the list of the server: the running summary in use (null if there is none), its older versions
// (newest first), and the parts in use (in the order of their messages).
export function splitSummaries(all) {
  const versions = all.filter((it) => it.level === 1 && it.status === "superseded")
  const running = all.find((it) => it.level === 1 && it.status !== "superseded") ?? null
  return { running, versions, parts: all.filter((it) => it.level === 0) }
}

// Returns "current", "stale" (messages were edited) or "unused" (a message was deleted) for a summary in
// use; null for an older version.
export function stateOf({ status, is_usable: isUsable }) {
  if (status === "superseded") return null
  return isUsable ? status : "unused"
}

// Returns whether the user may edit, restore and regenerate the summaries of a space. `member` is the
// user's own membership, or null.
export function mayChangeSummaries(space, member) {
  return mayChangeAbout(space, member, null)
}

// Returns the fields that people can change, by their API names.
export function valuesOf({ content, pinned_facts }) {
  return { content, pinned_facts }
}

// Returns each fact on one line, without empty ones.
export function cleanFacts(facts) {
  return facts.map((it) => it.replace(/\s+/g, " ").trim()).filter((it) => it !== "")
}

// Returns the fields that differ from those of the summary.
export function changesOf(summary, values) {
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => !isSame(value, summary[name])))
}

// Returns the names of the fields that two people have changed: `seen` is the summary that this person
// has changed, `current` the stored one. Changes of different fields do not conflict.
export function conflictsOf(seen, current, changes) {
  return Object.keys(changes).filter(
    (name) => !isSame(seen[name], current[name]) && !isSame(changes[name], current[name]),
  )
}

// Returns the values of a form when a conflict is decided for the stored summary: changes of fields that
// are not in `conflicts` are kept.
export function withTheirs(seen, current, { values, conflicts }) {
  const changes = Object.entries(changesOf(seen, values))
  const kept = changes.filter(([name]) => !conflicts.includes(name))
  return { ...valuesOf(current), ...Object.fromEntries(kept) }
}

// Returns the text and the pinned facts as one text, for a comparison of versions.
export function fullText({ content, pinned_facts: facts }) {
  return [content, ...facts.map((it) => `• ${it}`)].join("\n")
}

function isSame(a, b) {
  return JSON.stringify(a) === JSON.stringify(b)
}
