// An author's note as it stands in settings, and as a form shows it.
export const POSITIONS = ["in_chat", "before", "after"]
export const ROLES = ["system", "user", "assistant"]
// What the note of a character does to that of the space.
export const COMBINE_MODES = ["replace", "before", "after"]

const USUAL = { text: "", position: "in_chat", depth: 4, role: "system", interval: 1, combine: "replace" }
const MOST = 10_000

// The note of these settings; what it does not say is as usual.
export function readAuthorNote(settings) {
  const stated = settings?.author_note ?? {}
  const said = Object.entries(stated).filter(([key, value]) => key in USUAL && value !== null)
  return { ...USUAL, ...Object.fromEntries(said) }
}

// The same settings with another note; a note without words is none.
export function withAuthorNote(settings, note) {
  const { author_note: known, ...others } = settings ?? {}
  const text = note.text.trim()
  if (text === "") return others
  const { combine, ...common } = note
  const own = combine === undefined || combine === USUAL.combine ? {} : { combine }
  const { combine: _, ...kept } = known ?? {}
  return { ...others, author_note: { ...kept, ...common, text, ...own } }
}

// A whole number that the server takes, or else what stood there.
export function wholeNumber(text, known) {
  const n = Number(text)
  return text.trim() !== "" && Number.isInteger(n) && n >= 0 && n <= MOST ? n : known
}
