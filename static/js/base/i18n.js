// Texts by key, in the language of the page. Every language is a table in `strings/` with the same
// keys. English is always loaded and is used if another table lacks a key; the others are loaded on
// demand.
import en from "../strings/en.js"

// Each language is listed by its own name, because a user may not read any other.
export const LANGUAGES = [
  { tag: "en", name: "English", dir: "ltr", load: async () => ({ default: en }) },
  { tag: "zh-CN", name: "简体中文", dir: "ltr", load: () => import("../strings/zh-CN.js") },
]

let current = "en"
let table = en
let plurals = new Intl.PluralRules(current)
let numbers = new Intl.NumberFormat(current)
const HAN = /\p{Script=Han}/u
const LETTER = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Number}]/u
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/

// Returns the current language, for `Intl` too.
export function locale() {
  return current
}

// Returns the first of these tags that is supported, or null. "en-GB" matches "en"; a tag of the
// traditional script does not match the simplified one.
export function matchLocale(tags) {
  for (const requested of tags) {
    const found = LANGUAGES.find(({ tag }) => likely(tag) === likely(requested))
    if (found) return found.tag
  }
  return null
}

// Sets the language of the page. Throws if its table cannot be loaded, and keeps the previous one.
export async function setLocale(tag) {
  const { load } = LANGUAGES.find((it) => it.tag === tag)
  table = (await load()).default
  current = tag
  plurals = new Intl.PluralRules(tag)
  numbers = new Intl.NumberFormat(tag)
}

// `t("x", { n: 2 })`: an entry with `one`, `other`, ... is chosen by `n`. Numbers are formatted in the
// language of the page.
export function t(key, values = {}) {
  let text = table[key] ?? en[key]
  if (text === undefined) return key
  if (typeof text === "object") text = text[plurals.select(values.n)] ?? text.other
  return text.replace(/\{(\w+)\}/g, (whole, name, at) => {
    if (!(name in values)) return whole
    return spaced(shown(values[name]), text[at - 1], text[at + whole.length])
  })
}

export function has(key) {
  return key in en
}

function shown(value) {
  return typeof value === "number" ? numbers.format(value) : isolate(String(value))
}

// Adds a space between Chinese characters and Latin letters or digits. The characters at both ends of a
// value are known only here.
function spaced(value, before = "", after = "") {
  const left = HAN.test(before) && LETTER.test([...value][0] ?? "") ? " " : ""
  const right = HAN.test(after) && LETTER.test([...value].at(-1) ?? "") ? " " : ""
  return left + value + right
}

// Isolates a name with right-to-left characters from the sentence around it.
function isolate(value) {
  return RIGHT_TO_LEFT.test(value) ? `\u2068${value}\u2069` : value
}

// Returns language and script: "zh-SG" and "zh-CN" are both "zh-Hans". Null for an invalid tag.
function likely(tag) {
  try {
    const { language, script } = new Intl.Locale(tag).maximize()
    return `${language}-${script}`
  } catch {
    return null
  }
}
