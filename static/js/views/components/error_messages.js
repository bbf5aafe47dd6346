// What the server says, as a sentence for a person in the language of the page.
import { has, t } from "../../base/i18n.js"
import { readSpeakerReason } from "../../models/queue/speaker_reason.js"

// A value that cannot be is explained by its field, everything else by its code. Sentences that
// only the server can know, because they tell which limit or which address, are shown as they are.
export function explain(error) {
  const { code, param, message, retryAfter } = error ?? {}
  if (code === "rate_limited" && retryAfter) return t("error.rate_limited_for", { seconds: retryAfter })
  const key = [`error.${code}.${param}`, `error.${code}`].find(has)
  return (key && t(key, { message: message ?? "" }).trim()) || message || t("error.unexpected")
}

// What happened to a run, in plain words; the reason of the provider follows as a detail.
export function explainRun(run) {
  const code = run.error?.code
  return has(`run_error.${code}`) ? t(`run_error.${code}`) : t("run_error.unexpected")
}

// Why a run was canceled, in a few words; null where that is not known.
export function explainCancel({ canceled_because: reason }) {
  const key = `cancel_reason.${reason}`
  return reason && has(key) ? t(key) : null
}

// A suggestion that does not come, as short as it would be.
export function explainCandidateError({ code }) {
  if (code === "network") return t("error.network")
  const key = [`copilot_panel.${code}`, `run_error.${code}`].find(has) ?? "copilot_panel.failed"
  return t(key)
}

// Why somebody was chosen to speak.
export function explainSpeakerReason(text) {
  const reason = readSpeakerReason(text)
  return reason ? t(reason.key, reason.values) : text
}
