// The runs of all spaces as far as they are shown, the newest first: looked at again and again, and
// followed back on demand.

// The words by which runs are told apart, as the server has them.
export const STATUSES = ["queued", "running", "succeeded", "failed", "canceled", "skipped"]
export const KINDS = ["user_turn", "auto_mode", "regenerate", "force_talk"]
export const ERRORS = [
  "content_filter",
  "context_overflow",
  "empty_response",
  "internal",
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
  // Behind which the older ones are.
  get oldest() {
    return this.#runs.at(-1)?.id ?? null
  }
  // How many to ask for, so that what is shown is seen again.
  get refreshLimit() {
    return Math.min(MAX_LIMIT, Math.max(MIN_LIMIT, this.#runs.length))
  }

  // Another question was asked: nothing of the old answer stays.
  clear() {
    this.#runs = []
    this.#hasMore = false
  }

  // The newest part, as it is now. What it does not reach stays as it was.
  refresh({ data, has_more: hasMore }) {
    const last = data.at(-1)?.id
    // Ids are made in the order of time.
    const older = hasMore ? this.#runs.filter((run) => run.id < last) : []
    this.#runs = [...data, ...older]
    if (older.length === 0) this.#hasMore = hasMore
  }

  // The part behind the oldest.
  append({ data, has_more: hasMore }) {
    const known = new Set(this.#runs.map((run) => run.id))
    this.#runs = [...this.#runs, ...data.filter((run) => !known.has(run.id))]
    this.#hasMore = hasMore
  }
}
