// Texts by key, in the language of the page. Every language is a table in `strings/` with the same
// keys. English comes with the page and stands in for what another table lacks; the others are
// fetched when somebody reads them.
import en from "../strings/en.js"

// A name is said in its own language: whoever looks for it may read no other.
export const LANGUAGES = [
  { tag: "en", name: "English", dir: "ltr", load: async () => ({ default: en }) },
  { tag: "zh-CN", name: "简体中文", dir: "ltr", load: () => import("../strings/zh-CN.js") },
]

// The language of the page, for `Intl` too. Importers always see the present one.
export let locale = "en"
let table = en
let plurals = new Intl.PluralRules(locale)
let numbers = new Intl.NumberFormat(locale)
const HAN = /\p{Script=Han}/u
const LETTER = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Number}]/u
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/

// The first of these tags that the page can setLocale, null when there is none. "en-GB" gets "en";
// who reads traditional signs is not given simplified ones.
export function matchLocale(tags) {
  for (const requested of tags) {
    const found = LANGUAGES.find(({ tag }) => likely(tag) === likely(requested))
    if (found) return found.tag
  }
  return null
}

// From now on the page speaks the language of this tag. Throws when its table cannot be fetched,
// and leaves the old one in its place.
export async function setLocale(tag) {
  const { load } = LANGUAGES.find((it) => it.tag === tag)
  table = (await load()).default
  locale = tag
  plurals = new Intl.PluralRules(tag)
  numbers = new Intl.NumberFormat(tag)
}

// `t("x", { n: 2 })`: an entry with `one`, `other`, ... is chosen by `n`. Numbers are written as
// the language writes them.
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

// Chinese is set apart from letters and digits by a blank, from its own signs it is not. Which of
// the two a name begins and ends with is known only here.
function spaced(value, before = "", after = "") {
  const left = HAN.test(before) && LETTER.test([...value][0] ?? "") ? " " : ""
  const right = HAN.test(after) && LETTER.test([...value].at(-1) ?? "") ? " " : ""
  return left + value + right
}

// A name with right-to-left signs must not turn the sentence around it.
function isolate(value) {
  return RIGHT_TO_LEFT.test(value) ? `\u2068${value}\u2069` : value
}

// Language and script: "zh-SG" and "zh-CN" are both "zh-Hans". Null for what is no language tag.
function likely(tag) {
  try {
    const { language, script } = new Intl.Locale(tag).maximize()
    return `${language}-${script}`
  } catch {
    return null
  }
}
