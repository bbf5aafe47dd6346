// The message that a reply quotes.
import { textOf } from "../message/pictures.js"

// Returns the quotation of a message, as the server describes it, with the audience of the message.
export function quoteOf(message) {
  const { id, seq, author_name: author, persona, audience = null } = message
  const excerpt = [...textOf(message).trim().replace(/\r\n?|[\n\v\f\u0085\u2028\u2029]/g, " ")].slice(0, 200).join("")
  return { id, seq, author_name: persona?.name ?? author, excerpt, audience, hidden: false }
}

// Returns the message with the quotation that it has after `target` was created, changed or hidden; the
// same object if nothing changes.
export function requoted(message, target) {
  const { reply_to: quote } = message
  if (quote?.id !== target.id) return message
  const hidden = target.visibility === "hidden"
  const next = hidden ? { ...quote, excerpt: "", hidden } : { ...quoteOf(target), author_name: quote.author_name }
  return next.hidden === quote.hidden && next.excerpt === quote.excerpt ? message : { ...message, reply_to: next }
}

// Whether a post was refused because the message that it answers was deleted.
export function isTargetGone(entry) {
  return Boolean(entry.replyTo) && entry.error?.param === "reply_to_id"
}
