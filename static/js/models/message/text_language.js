// Guesses the language of a text by its script: browsers need it to choose fonts, screen readers to
// choose a voice. Messages may be in any language.
const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}]/u
const HANGUL = /\p{Script=Hangul}/u
const HAN = /\p{Script=Han}/gu
const WORDS = /\p{Script=Latin}+/gu
// Only the beginning is inspected, because a streamed text is inspected many times.
const LOOKS_AT = 400

// Returns a value for `lang`. A few characters of another script do not decide; Latin text returns ""
// because many languages use it.
export function languageOf(text) {
  const beginning = text.slice(0, LOOKS_AT)
  const n = (signs) => beginning.match(signs)?.length ?? 0
  if (KANA.test(beginning)) return "ja"
  if (HANGUL.test(beginning)) return "ko"
  return n(HAN) > n(WORDS) ? "zh" : ""
}
