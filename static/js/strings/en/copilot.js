// Suggested replies and the copilot.
export default {
  "copilot_panel.open": "Help me write",
  "copilot_panel.label": "Help with writing",
  "copilot_panel.instruction": "What should it say?",
  "copilot_panel.instruction_hint": "Anything that fits",
  "copilot_panel.count": "How many",
  "copilot_panel.suggest": "Suggest replies",
  "copilot_panel.suggestions": "Suggested replies",
  "copilot_panel.waiting": "Being written…",
  "copilot_panel.use": "Use suggestion {n}: {text}",
  "copilot_panel.rate_limited": "The model is busy with replies.",
  "copilot_panel.failed": "This one did not come.",
  "copilot_panel.canceled": "This one was stopped before it was written.",

  "copilot.about": "Or let the AI write as you for a while. You can take over at any time.",
  "copilot.elsewhere": "It speaks for you in another conversation now.",
  "copilot.steps": "Texts",
  "copilot.turn_on": "Speak for me",
  "copilot.speaks": {
    one: "The AI speaks for you, as {name}. {n} text left.",
    other: "The AI speaks for you, as {name}. {n} texts left.",
  },
  "copilot.blocked": "It waits until the round goes on.",
  "copilot.waiting": "It rests until you let it go on.",
  "copilot.resume": "Go on",
  "copilot.take_over": "Take over",
  "speaker_reason.copilot": { one: "speaks for a person, {n} text left", other: "speaks for a person, {n} texts left" },
}
