// Reads why an entry was activated or not. The server sends a word and, after a colon, a detail: `key:
// dragon`, `dice: 50`, `constant`.
const WORDS = new Set([
  "constant",
  "vectorized",
  "decorator",
  "key",
  "sticky",
  "kept_after_match",
  "disabled",
  "character_filter",
  "trigger",
  "delay",
  "cooldown",
  "waits_for_recursion",
  "replies",
  "done_after_match",
  "bad_pattern",
  "too_slow",
  "no_keys",
  "no_key",
  "excluded",
  "secondary_keys",
  "group",
  "dice",
  "budget",
  "book_budget",
])

// Returns `{ key, values }`, or null for an unknown word.
export function readLorebookReason(text) {
  const [, word, detail = ""] = /^([a-z_]+)(?:: ([^]*))?$/.exec(text) ?? []
  return WORDS.has(word) ? { key: `lorebook_reason.${word}`, values: { detail } } : null
}
