// In which script a text is written: what a browser needs to choose fonts, and a screen reader a
// voice. People write in any language, whatever the page speaks.
const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}]/u
const HANGUL = /\p{Script=Hangul}/u
const HAN = /\p{Script=Han}/gu
const WORDS = /\p{Script=Latin}+/gu
// The beginning tells, and a text that grows is asked many times.
const LOOKS_AT = 400

// A `lang` for this text. A name in other signs does not turn the whole of it; and letters are
// shared by too many languages to tell: theirs is unknown.
export function languageOf(text) {
  const beginning = text.slice(0, LOOKS_AT)
  const n = (signs) => beginning.match(signs)?.length ?? 0
  if (KANA.test(beginning)) return "ja"
  if (HANGUL.test(beginning)) return "ko"
  return n(HAN) > n(WORDS) ? "zh" : ""
}
