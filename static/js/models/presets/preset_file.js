// Detects preset files: chat completion presets, samplers, templates, SillyTavern's settings, and our own
// format. The server validates the file; this only decides whether a dropped file is offered as a preset.
const OF_CHAT = [
  "prompts",
  "prompt_order",
  "openai_max_context",
  "openai_max_tokens",
  "chat_completion_source",
]
const TEMPERATURES = ["temp", "temperature"]
const SAMPLERS = ["rep_pen", "repetition_penalty", "top_p", "top_k", "min_p"]
const OF_TEMPLATES = ["story_string", "input_sequence", "output_sequence"]
const PARTS = ["instruct", "context", "sysprompt", "reasoning"]
const OF_SETTINGS = ["main_api", "power_user"]

export function isPreset(json) {
  if (json === null || typeof json !== "object" || Array.isArray(json)) return false
  if (json.spec === "troupe_preset") return true
  const has = (keys) => keys.some((key) => key in json)
  const isMaster = PARTS.some((key) => json[key] !== null && typeof json[key] === "object")
  const isSettings = OF_SETTINGS.every((key) => key in json)
  return has(OF_CHAT) || (has(TEMPERATURES) && has(SAMPLERS)) || has(OF_TEMPLATES) || isMaster || isSettings
}
