// Kinds of providers, the model of a character, reasoning.
export default {
  "provider.kind": "Kind",
  "provider.compatible": "OpenAI-compatible server",
  "provider.url_hint_usual": "Leave it empty for the usual address: {url}",
  "provider.searching": "Looking for models on this machine…",
  "provider.no_local_servers": "No server of models was found on this machine. Enter the address of one.",
  "provider.local_server": {
    one: "{name}, {n} model",
    other: "{name}, {n} models",
  },
  "provider.reasoning": "Thinking before speaking",
  "provider.reasoning_hint": "What it thinks is shown folded, and never told to a model again.",
  "effort.usual": "As the model likes",
  "effort.off": "Off",
  "effort.low": "Little",
  "effort.medium": "Some",
  "effort.high": "Much",

  "member.model": "Speaks with",
  "member.model_usual": "The default model",
  "member.model_of": "{name}: {model}",
  "member.model_hint": "The models that are connected are in the settings.",
  "member.model_own": "Another model of it",
  "member.model_own_hint": "Leave it empty for the model named above.",
  "member.speaks_with": "speaks with {model}",
  "runs.model": "Model",

  "message.reasoning": "Reasoning",
  "message.reasoning_cut": "There was more of it, which was not kept.",
}
