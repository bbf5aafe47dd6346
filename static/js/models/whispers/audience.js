// Who sees a message: a list of ids of memberships with the author among them; null is everyone. A message
// with an audience is a whisper.

// Returns the audience without the author: whom a message was whispered to. A whisper to oneself names the
// author.
export function recipientsOf(audience, authorId) {
  const others = audience.filter((id) => id !== authorId)
  return others.length > 0 ? others : audience
}

// Returns the audience of a row of the timeline: a message, a pending message or a stream; null: everyone.
export function audienceOf({ message, entry, stream, audience }) {
  if (message) return message.audience ?? null
  return entry ? (entry.fields?.audience ?? null) : stream ? (audience ?? null) : null
}

export function isSameAudience(a, b) {
  if (!a || !b) return !a && !b
  return a.length === b.length && a.every((id) => b.includes(id))
}
