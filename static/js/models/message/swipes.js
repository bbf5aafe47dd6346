// Swipes of a message: which one a step leads to. Those of a greeting wrap around; after the last swipe
// of any other message comes a new one.

// `delta` is 1 or -1. Returns the position of a swipe, "new", or null.
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

// Whether a message keeps the partial text of a stopped run.
export function isPartialTextOf(run, message) {
  return run.target_message_id === message?.id && message.metadata?.stopped === true
}

// Whether a text ended before the model had finished it.
export function isCut(message) {
  return message.metadata?.truncated === true || message.metadata?.stopped === true
}

export function hasSwipes(message) {
  return message.swipes?.count > 1
}

// Whether a run may have written the shown swipe. Each swipe may have its own run.
export function mayComeFromRun(message) {
  return message.conversation_run_id !== null || hasSwipes(message)
}

// Whether a running run writes into this message: then its text cannot be changed.
export function isWritten(message, { stream, queue }) {
  return stream?.targetId === message.id || queue.running_run?.target_message_id === message.id
}
