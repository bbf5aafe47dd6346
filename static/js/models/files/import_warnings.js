// Translates the warnings about an imported file or a lorebook.
import { has, t } from "../../base/i18n.js"

// `warnings` are the sentences of the server; `warnings_coded` are the same warnings by code, in the
// same order.
export function sentencesOf({ warnings = [], warnings_coded: coded = [] }) {
  return warnings.map((sentence, at) => sentenceOf(coded[at], sentence))
}

// `otherwise` is returned for a code that is unknown here, for example of a newer server.
export function sentenceOf(warning, otherwise) {
  const key = `warning.${warning?.code}`
  if (!has(key)) return otherwise
  const values = { ...warning.params }
  if (has(`warning_kind.${values.found}`)) values.found = t(`warning_kind.${values.found}`)
  if (has(`warning_field.${values.field}`)) values.what = t(`warning_field.${values.field}`)
  return t(key, values)
}
