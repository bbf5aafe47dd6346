// Messages that are no one's own text: those of a narrator, those that a person wrote in the name of a
// character, and dice.

// Whether a message of the server, or an entry of the outbox, is the text of a narrator.
export function isNarrator({ message, entry }) {
  if (message) return message.role === "system" && !isRoll(message)
  return entry?.fields?.kind === "narrator"
}

// Whether the server rolled dice: such a text cannot be edited.
export function isRoll(message) {
  return typeof message?.metadata?.roll?.total === "number"
}

// Returns the name of the person who wrote the text in the name of a character, or null.
export function writerOf(message) {
  const name = message?.metadata?.posted_by
  return typeof name === "string" && name !== "" ? name : null
}
