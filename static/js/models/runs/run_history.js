// The loaded runs of all spaces, newest first: refreshed repeatedly, and extended with older runs on
// demand.

// The values of the server.
export const STATUSES = ["queued", "running", "succeeded", "failed", "canceled", "skipped"]
export const KINDS = ["user_turn", "auto_mode", "regenerate", "force_talk", "continue"]
export const ERRORS = [
  "content_filter",
  "context_overflow",
  "empty_response",
  "internal",
  "invalid_macro",
  "no_provider",
  "run_timeout",
  "stale_running_run",
  "token_limit_exceeded",
  "upstream_disconnected",
  "upstream_error",
  "upstream_rate_limited",
  "upstream_timeout",
]

const MIN_LIMIT = 50
const MAX_LIMIT = 200

export default class RunHistory {
  #runs = []
  #hasMore = false

  get runs() {
    return this.#runs
  }
  get hasMore() {
    return this.#hasMore
  }
  // The id of the oldest loaded run; older ones are loaded before it.
  get oldest() {
    return this.#runs.at(-1)?.id ?? null
  }
  // The limit that covers all loaded runs.
  get refreshLimit() {
    return Math.min(MAX_LIMIT, Math.max(MIN_LIMIT, this.#runs.length))
  }

  // Drops all runs, for another filter.
  clear() {
    this.#runs = []
    this.#hasMore = false
  }

  // Replaces the newest runs; older ones are kept.
  refresh({ data, has_more: hasMore }) {
    const last = data.at(-1)?.id
    // Ids are ordered by time.
    const older = hasMore ? this.#runs.filter((run) => run.id < last) : []
    this.#runs = [...data, ...older]
    if (older.length === 0) this.#hasMore = hasMore
  }

  // Adds a page of older runs.
  append({ data, has_more: hasMore }) {
    const known = new Set(this.#runs.map((run) => run.id))
    this.#runs = [...this.#runs, ...data.filter((run) => !known.has(run.id))]
    this.#hasMore = hasMore
  }
}
