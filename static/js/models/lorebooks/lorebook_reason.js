// Why an entry of a lorebook entered, or did not. The server says it in a word, and after a colon
// what it is about: `key: dragon`, `dice: 50`, `constant`.
const WORDS = new Set([
  "constant",
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

// Answers `{ key, values }`, or null for a word that is new here.
export function readLorebookReason(text) {
  const [, word, detail = ""] = /^([a-z_]+)(?:: ([^]*))?$/.exec(text) ?? []
  return WORDS.has(word) ? { key: `lorebook_reason.${word}`, values: { detail } } : null
}
