// Help with one's own words: replies to choose from, and the copilot.
export default {
  "helper.open": "Help me write",
  "helper.label": "Help with writing",
  "helper.instruction": "What should it say?",
  "helper.instruction_hint": "Anything that fits",
  "helper.count": "How many",
  "helper.suggest": "Suggest replies",
  "helper.suggestions": "Suggested replies",
  "helper.waiting": "Being written…",
  "helper.use": "Use suggestion {n}: {text}",
  "helper.rate_limited": "The model is busy with replies.",
  "helper.failed": "This one did not come.",
  "helper.canceled": "This one was stopped before it was written.",

  "copilot.about": "Or let the AI write as you for a while. You can take over at any time.",
  "copilot.elsewhere": "It speaks for you in another conversation now.",
  "copilot.steps": "Texts",
  "copilot.turn_on": "Speak for me",
  "copilot.speaks": {
    one: "The AI speaks for you, as {name}. {n} text left.",
    other: "The AI speaks for you, as {name}. {n} texts left.",
  },
  "copilot.held": "It waits until the round goes on.",
  "copilot.resting": "It rests until you let it go on.",
  "copilot.go_on": "Go on",
  "copilot.take_over": "Take over",
  "because.copilot": { one: "speaks for a person, {n} text left", other: "speaks for a person, {n} texts left" },
}
