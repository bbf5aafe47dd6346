// Translates errors and reasons of the server into sentences in the language of the page.
import { has, t } from "../../base/i18n.js"
import { readSpeakerReason } from "../../models/queue/speaker_reason.js"

// An invalid value is explained by its field, every other error by its code. Messages with details that
// only the server knows, such as a limit, are shown as they are.
export function explain(error) {
  const { code, param, message, retryAfter } = error ?? {}
  if (code === "rate_limited" && retryAfter) return t("error.rate_limited_for", { seconds: retryAfter })
  const key = [`error.${code}.${param}`, `error.${code}`].find(has)
  return (key && t(key, { message: message ?? "" }).trim()) || message || t("error.unexpected")
}

// Explains a failed run; the provider's message is shown separately.
export function explainRun(run) {
  const code = run.error?.code
  return has(`run_error.${code}`) ? t(`run_error.${code}`) : t("run_error.unexpected")
}

// Returns why a run was canceled, or null if unknown.
export function explainCancel({ canceled_because: reason }) {
  const key = `cancel_reason.${reason}`
  return reason && has(key) ? t(key) : null
}

// Explains in a short sentence why a suggestion failed.
export function explainCandidateError({ code }) {
  if (code === "network") return t("error.network")
  const key = [`copilot_panel.${code}`, `run_error.${code}`].find(has) ?? "copilot_panel.failed"
  return t(key)
}

// Explains why a speaker was selected.
export function explainSpeakerReason(text) {
  const reason = readSpeakerReason(text)
  if (!reason) return text
  const { instead } = reason.values
  return t(reason.key, instead ? { ...reason.values, instead: explainSpeakerReason(instead) } : reason.values)
}
