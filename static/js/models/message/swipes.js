// Which of the texts of a message one step leads to. Those of a greeting go round; behind the last
// text of any other message is one that is not written yet.

// `delta` is 1 or -1. Answers the position of a text, "new", or null when there is nothing that way.
export function swipeTarget(message, delta) {
  const { count, active } = message.swipes
  const next = active + delta
  if (next >= 0 && next < count) return next
  if (isGreeting(message)) return count > 1 ? (next + count) % count : null
  return delta > 0 ? "new" : null
}

export function isGreeting(message) {
  return message.metadata?.greeting === true
}

// Whether a run was for this message, and what it wrote until it was stopped was kept.
export function isPartialTextOf(run, message) {
  return run.target_message_id === message?.id && message.metadata?.stopped === true
}

export function hasSwipes(message) {
  return message.swipes?.count > 1
}

// Whether a run may have written the text that is shown. Of several, each may come from elsewhere.
export function mayComeFromRun(message) {
  return message.conversation_run_id !== null || hasSwipes(message)
}
