// Dropped files.
export default {
  "drop.here": "Drop to import",
  "drop.choose": "Choose files",
  "drop.unknown": "“{name}” is not a character card, lorebook, preset or chat that can be imported.",
}
