// Texts about the memories of a space: how many there are, how many are embedded and by which model, whether
// the provider works, how many background tasks are not finished, and how many tokens were used.
import { t } from "../../base/i18n.js"
import { amount } from "../../base/numbers.js"
import { shortTime } from "../../base/time.js"

// Returns the texts about the embedding model.
export function embeddingTexts({ provider_id: providerId, model, embedded, total, ...state }) {
  const { breaker_until: until, degraded, error } = state
  const name = providerId === null ? t("memory_settings.embedding_local") : model
  return [
    t("memory_settings.embedding_state", { model: name, n: embedded, m: total }),
    until !== null && t("memory_settings.embedding_breaker", { at: shortTime(until) }),
    degraded && until === null && t("memory_settings.embedding_paused"),
    error !== null && t("memory_settings.embedding_error", { error }),
  ].filter(Boolean)
}

// Returns the texts about the space.
export function stateTexts({ embedding, tasks, tokens_used: n }) {
  return [
    ...embeddingTexts(embedding),
    tasks.queued > 0 && t("memory.tasks_queued", { n: tasks.queued }),
    tokensText(n),
  ].filter(Boolean)
}

// Returns how many tokens model calls for memories and summaries have used; null without any.
export function tokensText(n) {
  return n > 0 ? t("memory.tokens_used", { n, amount: amount(n) }) : null
}
