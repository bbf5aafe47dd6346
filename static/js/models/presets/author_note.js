// An author's note in settings and in a form.
export const POSITIONS = ["in_chat", "before", "after"]
export const ROLES = ["system", "user", "assistant"]
// How the note of a character is combined with that of the space.
export const COMBINE_MODES = ["replace", "before", "after"]

const USUAL = { text: "", position: "in_chat", depth: 4, role: "system", interval: 1, combine: "replace" }
const MOST = 10_000

// Returns the note of these settings; missing values are the defaults.
export function readAuthorNote(settings) {
  const given = settings?.author_note ?? {}
  const stated = Object.entries(given).filter(([key, value]) => key in USUAL && value !== null)
  return { ...USUAL, ...Object.fromEntries(stated) }
}

// Returns the settings with another note; a note without text is removed.
export function withAuthorNote(settings, note) {
  const { author_note: known, ...others } = settings ?? {}
  const text = note.text.trim()
  if (text === "") return others
  const { combine, ...common } = note
  const own = combine === undefined || combine === USUAL.combine ? {} : { combine }
  const { combine: _, ...kept } = known ?? {}
  return { ...others, author_note: { ...kept, ...common, text, ...own } }
}

// Returns a whole number that the server accepts, else the previous one.
export function wholeNumber(text, known) {
  const n = Number(text)
  return text.trim() !== "" && Number.isInteger(n) && n >= 0 && n <= MOST ? n : known
}
