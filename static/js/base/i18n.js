// Texts by key. Another language is another table in `strings/` with the same keys.
import en from "../strings/en.js"

const table = en
export const locale = "en"
const plurals = new Intl.PluralRules(locale)
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/

// `t("x", { n: 2 })`: an entry with `one`, `other`, ... is chosen by `n`.
export function t(key, values = {}) {
  let text = table[key]
  if (text === undefined) return key
  if (typeof text === "object") text = text[plurals.select(values.n)] ?? text.other
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? isolate(String(values[name])) : whole))
}

export function has(key) {
  return key in table
}

// A name with right-to-left signs must not turn the sentence around it.
function isolate(value) {
  return RIGHT_TO_LEFT.test(value) ? `\u2068${value}\u2069` : value
}
