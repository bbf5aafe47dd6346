// Dropped files.
export default {
  "drop.here": "Let go to bring it in",
  "drop.choose": "Choose files",
  "drop.unknown": "“{name}” is no card, lorebook, preset or chat that can be read here.",
}
