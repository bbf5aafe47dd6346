// Messages that are out of character (OOC): people see them, characters do not.

// Whether a text is out of character by itself: all of it is enclosed in `((` and `))`.
export function isOocText(text) {
  const trimmed = text.trim()
  if (trimmed.length < 4 || !trimmed.startsWith("((") || !trimmed.endsWith("))")) return false
  const inner = trimmed.slice(2, -2)
  const end = inner.indexOf("))")
  return end < 0 || !inner.slice(end + 2).includes("((")
}

// Whether a message of the server, or an entry of the outbox, is out of character.
export function isOoc({ message, entry }) {
  if (message) return message.is_ooc === true
  // The text of a narrator or a character is never out of character.
  if (!entry || entry.fields?.kind) return false
  return entry.fields?.is_ooc ?? isOocText(entry.content)
}

// Only messages that people wrote can be out of character.
export function mayBeOoc(message) {
  return message.role === "user" && message.conversation_run_id === null
}
