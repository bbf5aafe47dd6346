// Model servers that run on one's own machine, on the ports on which they usually listen.
export const PRESETS = [
  { key: "ollama", name: "Ollama", baseUrl: "http://127.0.0.1:11434/v1" },
  { key: "lmstudio", name: "LM Studio", baseUrl: "http://127.0.0.1:1234/v1" },
  { key: "llamacpp", name: "llama.cpp", baseUrl: "http://127.0.0.1:8080/v1" },
  { key: "koboldcpp", name: "KoboldCpp", baseUrl: "http://127.0.0.1:5001/v1" },
]

// What to call a provider whose name nobody gave.
export function nameFor(baseUrl) {
  const preset = PRESETS.find((it) => it.baseUrl === baseUrl)
  if (preset) return preset.name
  try {
    return new URL(baseUrl).host
  } catch {
    return baseUrl
  }
}
