// An error as a sentence for a person.
import { has, t } from "../base/i18n.js"

export function explain(error) {
  const key = `error.${error?.code}`
  if (error?.code === "rate_limited" && error.retryAfter)
    return t("error.rate_limited_for", { seconds: error.retryAfter })
  if (has(key)) return t(key)
  return error?.message || t("error.unexpected")
}

// What happened to a run, in plain words; the reason of the provider follows as a detail.
export function explainRun(run) {
  const code = run.error?.code
  return has(`run_error.${code}`) ? t(`run_error.${code}`) : t("run_error.unexpected")
}
