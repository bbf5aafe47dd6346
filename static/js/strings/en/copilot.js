// Suggested replies and the copilot.
export default {
  "copilot_panel.open": "Help me write",
  "copilot_panel.label": "Writing help",
  "copilot_panel.instruction": "What should it say?",
  "copilot_panel.instruction_hint": "Optional",
  "copilot_panel.count": "Number of suggestions",
  "copilot_panel.suggest": "Suggest replies",
  "copilot_panel.suggestions": "Suggested replies",
  "copilot_panel.waiting": "Generating…",
  "copilot_panel.use": "Use suggestion {n}: {text}",
  "copilot_panel.rate_limited": "The model is busy with other replies.",
  "copilot_panel.failed": "This suggestion could not be generated.",
  "copilot_panel.canceled": "This suggestion was stopped.",

  "copilot.about": "Copilot: the AI writes your messages for you. You can take over at any time.",
  "copilot.elsewhere": "The copilot is on in another conversation.",
  "copilot.steps": "Messages",
  "copilot.turn_on": "Turn on copilot",
  "copilot.speaks": {
    one: "The copilot writes for you, as {name}. {n} message left.",
    other: "The copilot writes for you, as {name}. {n} messages left.",
  },
  "copilot.blocked": "It is waiting until the round continues.",
  "copilot.waiting": "It is waiting until you continue.",
  "copilot.resume": "Continue",
  "copilot.take_over": "Take over",
  "speaker_reason.copilot": {
    one: "copilot of a user, {n} message left",
    other: "copilot of a user, {n} messages left",
  },
}
