// What tells the file of a preset from other JSON: the form that others use for whole conversations
// with a model, the one for samplers alone, or our own.
const OF_CHAT = [
  "prompts",
  "prompt_order",
  "openai_max_context",
  "openai_max_tokens",
  "chat_completion_source",
]
const OF_TEXT = ["temp", "rep_pen"]

export function isPreset(json) {
  if (json === null || typeof json !== "object" || Array.isArray(json)) return false
  if (json.spec === "troupe_preset") return true
  return OF_CHAT.some((key) => key in json) || OF_TEXT.every((key) => key in json)
}
