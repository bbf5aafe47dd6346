// The quick replies of a space: texts and commands that its members post with a button.

export const MOST_REPLIES = 20
export const LONGEST_LABEL = 40
export const LONGEST_TEXT = 2000

// Returns the quick replies of these settings, `{ label, text }` each; malformed ones are ignored.
export function quickRepliesOf(settings) {
  const given = settings?.quick_replies
  if (!Array.isArray(given)) return []
  return given.filter((it) => isText(it?.label) && isText(it?.text)).slice(0, MOST_REPLIES)
}

// Returns the settings with these quick replies; all other settings are kept. A row without a label gets the
// beginning of its text, a row without a text is left out.
export function withQuickReplies(settings, replies) {
  const { quick_replies: _, ...others } = settings ?? {}
  const kept = replies.filter(({ text }) => isText(text)).map(labeled)
  return kept.length > 0 ? { ...others, quick_replies: kept } : others
}

function labeled({ label, text, ...others }) {
  const own = label.trim()
  const name = own === "" ? [...text.trim().split("\n")[0]].slice(0, LONGEST_LABEL).join("") : own
  return { ...others, label: name, text: text.trim() }
}

function isText(value) {
  return typeof value === "string" && value.trim() !== ""
}
