// The kinds of model providers and their default names.

// `name` is the same in every language; null has a translation. `defaultUrl` is used unless another
// address is given.
export const KINDS = [
  { kind: "openai_compatible", name: null, defaultUrl: null },
  { kind: "ollama", name: "Ollama", defaultUrl: "http://127.0.0.1:11434" },
  { kind: "openai", name: "OpenAI", defaultUrl: "https://api.openai.com/v1" },
  { kind: "anthropic", name: "Anthropic", defaultUrl: "https://api.anthropic.com/v1" },
  {
    kind: "gemini",
    name: "Google Gemini",
    defaultUrl: "https://generativelanguage.googleapis.com/v1beta",
  },
]

// Only these kinds have an API for embeddings.
const EMBEDDING_KINDS = ["openai_compatible", "ollama", "openai", "gemini"]

export function canEmbed({ kind, disabled }) {
  return EMBEDDING_KINDS.includes(kind) && !disabled
}

export function kindOf(kind) {
  return KINDS.find((it) => it.kind === kind) ?? KINDS[0]
}

// `label` is the name of the kind; `found` are the servers found on the machine of the server.
export function nameFor({ kind, label, baseUrl, found = [] }) {
  const server = found.find((it) => it.kind === kind && it.base_url === baseUrl)
  if (server) return server.name
  if (baseUrl === "") return label
  try {
    return new URL(baseUrl).host
  } catch {
    return baseUrl
  }
}

// Returns the model of a member, `{ provider, model }`, or null for the default model.
export function modelChoiceOf(member, providers) {
  const provider = providers.find((it) => it.id === member.llm_provider_id)
  if (!provider || provider.disabled) return null
  return { provider, model: member.settings?.model?.trim() || provider.model }
}
