// The kinds of servers that have models, and what to call one whose name nobody gave.

// `name`: what it is called in every language; null has a text for it. `defaultUrl`: where it answers
// unless another address is given.
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

export function kindOf(kind) {
  return KINDS.find((it) => it.kind === kind) ?? KINDS[0]
}

// `label` is what the kind is called; `found` the servers that were found on this machine.
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

// With which model a member speaks: `{ provider, model }`, or null for the defaultUrl one.
export function modelChoiceOf(member, providers) {
  const provider = providers.find((it) => it.id === member.llm_provider_id)
  if (!provider || provider.disabled) return null
  return { provider, model: member.settings?.model?.trim() || provider.model }
}
