// Kinds of providers, the model of a character, reasoning.
export default {
  "provider.kind": "Type",
  "provider.compatible": "OpenAI-compatible server",
  "provider.url_hint_usual": "Leave it empty for the default address: {url}",
  "provider.searching": "Looking for models on this machine…",
  "provider.no_local_servers": "No model server was found on this machine. Enter an address.",
  "provider.local_server": {
    one: "{name}, {n} model",
    other: "{name}, {n} models",
  },
  "provider.reasoning": "Reasoning Effort",
  "provider.reasoning_hint": "Reasoning is shown collapsed, and is not sent to a model again.",
  "effort.usual": "Auto",
  "effort.off": "Off",
  "effort.low": "Low",
  "effort.medium": "Medium",
  "effort.high": "High",

  "member.model": "Model",
  "member.model_usual": "Default model",
  "member.model_unknown": "Another provider",
  "member.model_of": "{name}: {model}",
  "member.model_hint": "Connected models are listed in the settings.",
  "member.model_own": "Other model of this provider",
  "member.model_own_hint": "Leave it empty to use the model above.",
  "member.speaks_with": "uses {model}",
  "runs.model": "Model",

  "message.reasoning": "Reasoning",
  "message.reasoning_cut": "The rest was not stored.",
}
