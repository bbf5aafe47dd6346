// What had to be put right in a file that somebody brought, and what is wrong with a lorebook, in the
// reader's language.
import { has, t } from "../../base/i18n.js"

// `warnings` are the server's sentences; `warnings_coded` are the same in the same order, by code.
export function sentencesOf({ warnings = [], warnings_coded: coded = [] }) {
  return warnings.map((sentence, at) => sentenceOf(coded[at], sentence))
}

// `otherwise` stands in for a code that this page does not know: a newer server may say more.
export function sentenceOf(warning, otherwise) {
  const key = `warning.${warning?.code}`
  if (!has(key)) return otherwise
  const values = { ...warning.params }
  if (has(`warning_kind.${values.found}`)) values.found = t(`warning_kind.${values.found}`)
  if (has(`warning_field.${values.field}`)) values.what = t(`warning_field.${values.field}`)
  return t(key, values)
}
