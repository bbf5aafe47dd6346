// The volatile entries of a preset, which change the beginning of a prompt with every turn, so that a provider
// with a prompt cache processes everything after them again. The server finds the same macros in
// `crates/tavern/src/macros/syntax/volatile_macros.rs`.

// Macros of the time of day, of chance and of the newest message. Dates change once a day.
const VOLATILE = new Set([
  "time",
  "isotime",
  "idleduration",
  "idle_duration",
  "random",
  "roll",
  "lastmessage",
  "lastchatmessage",
  "lastusermessage",
  "lastcharmessage",
  "lastmessageid",
  "firstincludedmessageid",
  "firstdisplayedmessageid",
  "allchatrange",
])

const COMMENT_BLOCK = /\{\{\s*\/\/\s*\}\}[^]*?\{\{\s*\/\/\/\s*\}\}/g
// A comment may contain macros, but they must not contain other macros.
const COMMENT = /\{\{\s*(?:\/\/|comment\b|hidden_key\b)(?:[^{}]|\{\{[^{}]*\}\})*\}\}/gi
const MACRO = /\{\{\s*#?\s*([^\s:{}"]+)([^{}]*)/g
const TIME_OF_DAY = /[HhmsAaX]|SSS|LLL|LT/
const LITERAL = /\[[^\]]*\]/g

// Returns the names of the volatile macros in a text, each once, as written.
export function volatileMacros(text) {
  const sent = text.replace(COMMENT_BLOCK, "").replace(COMMENT, "")
  const found = [...sent.matchAll(MACRO)].filter(([, name, rest]) => isVolatile(name.toLowerCase(), rest))
  return [...new Set(found.map(([, name]) => name))].sort()
}

// Returns the names of the volatile macros in an entry that is sent before the history; empty for other entries.
export function volatileMacrosOf(entry, entries) {
  const isSent = (it) => it.enabled && !it.system_prompt
  const isInOrder = (entry.place ?? "relative") === "relative"
  const before = entries.slice(0, entries.indexOf(entry))
  const follows = before.some((it) => isSent(it) && it.slot === "history")
  const hasOwnText = !entry.slot || entry.slot === "main" || entry.slot === "post_history"
  return isSent(entry) && isInOrder && !follows && hasOwnText ? volatileMacros(entry.text ?? "") : []
}

function isVolatile(name, rest) {
  if (name === "datetimeformat") return TIME_OF_DAY.test(rest.replace(LITERAL, ""))
  return VOLATILE.has(name) || name.startsWith("time_utc")
}
