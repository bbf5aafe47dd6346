// Detects preset files: chat completion presets, sampler presets, and our own format.
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
