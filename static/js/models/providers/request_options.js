// The options of a provider for its requests: messages or one text, how roles are arranged, which samplers are
// sent, whether a reply can be begun, and fields that are added to every request. Reads the fields of the dialog
// and writes them into the settings.
export const ROLE_HANDLINGS = ["auto", "native", "merge_consecutive", "no_system_after_first", "strict_alternation"]
export const PREFILLS = ["auto", "on", "off"]

export const MODES = ["chat", "text_completion"]
// The text completion APIs; their names are the same in every language.
export const COMPLETION_APIS = [
  { api: "openai", name: "OpenAI" },
  { api: "llama_cpp", name: "llama.cpp" },
  { api: "koboldcpp", name: "KoboldCpp" },
]

// The tokenizers for which the server estimates tokens; their names are the same in every language.
export const TOKENIZERS = [
  { tokenizer: "o200k_base", name: "OpenAI o200k_base" },
  { tokenizer: "cl100k_base", name: "OpenAI cl100k_base" },
  { tokenizer: "claude", name: "Claude" },
  { tokenizer: "mistral", name: "Mistral" },
  { tokenizer: "llama3", name: "Llama 3" },
  { tokenizer: "gemma", name: "Gemma" },
  { tokenizer: "qwen", name: "Qwen" },
  { tokenizer: "deepseek", name: "DeepSeek" },
]

// Kinds whose servers may have a text completion API.
const KINDS_WITH_MODES = ["openai_compatible"]
// Kinds whose API accepts messages in any order; the other APIs have one order.
const KINDS_WITH_ROLES = ["openai_compatible", "openai"]
// The server builds these fields.
const RESERVED = ["model", "messages", "prompt", "stream"]

export function canCompleteText(kind) {
  return KINDS_WITH_MODES.includes(kind)
}

export function canArrangeRoles(kind) {
  return KINDS_WITH_ROLES.includes(kind)
}

// Returns the values of the fields.
export function readRequestOptions(settings) {
  const extra = settings?.extra_body
  return {
    mode: settings?.mode ?? "chat",
    text_completion_api: settings?.text_completion_api ?? "auto",
    role_handling: settings?.role_handling ?? "auto",
    prefill: settings?.prefill ?? "auto",
    tokenizer: settings?.tokenizer ?? "auto",
    samplers: (settings?.samplers ?? []).join(", "),
    extra_body: extra && Object.keys(extra).length > 0 ? JSON.stringify(extra, null, 2) : "",
    extra_headers: Object.keys(settings?.extra_headers ?? {})
      .map((name) => `${name}:`)
      .join("\n"),
  }
}

// Returns the headers of a text with one header in each line, or null if a line is not a header. The value of a
// header without one is null, which keeps the stored value.
export function readHeaders(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "")
  const pairs = lines.map((line) => line.match(/^\s*([^\s:]+)\s*:(.*)$/))
  if (pairs.some((it) => it === null)) return null
  return Object.fromEntries(pairs.map(([, name, value]) => [name, value.trim() === "" ? null : value.trim()]))
}

// Returns why a text cannot be added to requests: "json", "object", `{ reserved }` with the name of a
// field, or null.
export function problemOfExtraBody(text) {
  if (text.trim() === "") return null
  let value
  try {
    value = JSON.parse(text)
  } catch {
    return "json"
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) return "object"
  const reserved = RESERVED.find((it) => it in value)
  return reserved ? { reserved } : null
}

// Returns the settings with these options; default values are not stored. Other settings are kept.
export function withRequestOptions(settings, options) {
  const { mode, text_completion_api: api, role_handling: roles, prefill, tokenizer } = options
  const { samplers, extra_body: text } = options
  const headers = readHeaders(options.extra_headers) ?? {}
  const names = Object.keys(options)
  const others = Object.fromEntries(Object.entries(settings ?? {}).filter(([name]) => !names.includes(name)))
  const listed = samplers.split(/[\s,]+/).filter(Boolean)
  return {
    ...others,
    ...(mode !== "chat" && { mode }),
    ...(mode !== "chat" && api !== "auto" && { text_completion_api: api }),
    ...(roles !== "auto" && { role_handling: roles }),
    ...(prefill !== "auto" && { prefill }),
    ...(tokenizer !== "auto" && { tokenizer }),
    ...(listed.length > 0 && { samplers: listed }),
    ...(text.trim() !== "" && { extra_body: JSON.parse(text) }),
    ...(Object.keys(headers).length > 0 && { extra_headers: headers }),
  }
}
