// A memory of a space: its kinds, and what a change of it sends.
// The values of the server. A snippet is a message as it was, which people do not write.
export const KINDS = ["relation", "preference", "event", "snippet"]
// The origins of a memory.
export const ORIGINS = ["extracted", "snippet", "person", "tool", "imported"]
export const MAX_CONTENT_CHARS = 2000
export const DEFAULT_IMPORTANCE = 0.5

// Returns the kinds that can be chosen: for a new memory, or for one of this kind.
export function choosableKinds(kind = null) {
  return KINDS.filter((it) => it !== "snippet" || it === kind)
}

// Returns the fields that people can change, by their API names.
export function valuesOf({ content, kind, importance, pinned, about_membership_id }) {
  return { content, kind, importance, pinned, about_membership_id }
}

// Returns the fields that differ from those of the memory.
export function changesOf(memory, values) {
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => value !== memory[name]))
}

// Returns whether two people have changed the text: `seen` is the memory that this person has changed,
// `current` the stored one. Changes of different fields do not conflict.
export function isTextConflict(seen, current, { content }) {
  return content !== undefined && ![seen.content, content].includes(current.content)
}

// Returns the first and the last message from which a memory was made, as `{ seq, memory }`: the first source
// of `memory` is this message.
export function sourcesOf(memory) {
  const { conversation_id: id, source_from_seq: from, source_to_seq: to } = memory
  if (id === null || from === null) return []
  const first = { seq: from, memory }
  return to === null || to === from ? [first] : [first, { seq: to, memory: { ...memory, source_from_seq: to } }]
}
