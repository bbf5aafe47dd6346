// The quick replies of a space: texts and commands that its members post with a button. Also reads the Quick
// Reply sets of SillyTavern.
import { commandsFor, readCommand } from "./slash_commands.js"

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

// Returns the first quick replies of a Quick Reply set of SillyTavern, at most `most`; null if the file is no such
// set. Also returns how many others there are, how many texts were shortened, and how many contain STscript
// commands, which are not supported here.
export function readQuickReplySet(file, most = MOST_REPLIES) {
  const entries = file?.qrList ?? file?.quickReplySlots
  if (!Array.isArray(entries)) return null
  const all = entries
    .map((it) => ({ label: asText(it?.label), text: asText(it?.message ?? it?.mes) }))
    .filter(({ text }) => isText(text))
  const kept = all.slice(0, most)
  const replies = kept.map(({ label, text }) => labeled({ label: cut(label, LONGEST_LABEL), text: cut(text, LONGEST_TEXT) }))
  return {
    replies,
    nLeftOut: all.length - kept.length,
    nShortened: kept.filter(({ text }) => [...text].length > LONGEST_TEXT).length,
    nScripts: replies.filter(({ text }) => isScript(text)).length,
  }
}

// Returns whether a text runs several commands, or one that does not exist here.
function isScript(text) {
  if (!text.startsWith("/")) return false
  return /\n\s*\/|\|\s*\//.test(text) || readCommand(text, commandsFor("owner"))?.unknown !== undefined
}

function cut(text, most) {
  return [...text].slice(0, most).join("")
}

function asText(value) {
  return typeof value === "string" ? value : ""
}

function labeled({ label, text, ...others }) {
  const own = label.trim()
  const name = own === "" ? [...text.trim().split("\n")[0]].slice(0, LONGEST_LABEL).join("") : own
  return { ...others, label: name, text: text.trim() }
}

function isText(value) {
  return typeof value === "string" && value.trim() !== ""
}
