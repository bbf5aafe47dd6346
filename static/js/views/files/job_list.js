// Background jobs at the bottom of the page, with progress and Cancel.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { afterFirstScreen } from "../../base/timing.js"
import { paths } from "../../router.js"
import { button } from "../components/button.js"

// Shorter jobs are not shown.
const SHOWN_AFTER_MS = 500

export default class JobList {
  #parts
  // By id: `{ timer, node, bar, close }`.
  #entries = new Map()

  constructor(parts) {
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    this.#parts.store.on("job", (job) => this.#update(job))
    afterFirstScreen(() => this.#parts.jobs.load().catch(() => {}))
  }

  // Private

  #update(job) {
    if (!this.#parts.jobs.isShown(job)) return
    if (job.status === "running") this.#show(job)
    else this.#end(job)
  }

  #show(job) {
    const known = this.#entries.get(job.id)
    if (known) {
      known.job = job
      if (known.bar) known.bar.value = shareOf(job)
      return
    }
    const entry = { job }
    entry.timer = setTimeout(() => this.#open(entry), SHOWN_AFTER_MS)
    this.#entries.set(job.id, entry)
  }

  #open(entry) {
    const { job } = entry
    entry.bar = el("progress", { class: "job__bar", max: "1", "aria-label": t("jobs.progress") })
    entry.bar.value = shareOf(job)
    const node = el(
      "div",
      { class: "toast job", role: "status", "data-id": `job-${job.id}` },
      el("span", { class: "toast__text" }, t(`jobs.${job.kind}`)),
      entry.bar,
      this.#parts.jobs.canCancel(job) && button(t("cancel"), { look: "quiet", click: () => this.#cancel(job) }),
    )
    entry.close = this.#parts.toasts.keep(node)
  }

  #cancel(job) {
    const { jobs, toasts } = this.#parts
    // A job that has finished meanwhile is not an error.
    jobs.cancel(job).catch((error) => error.code !== "already_finished" && toasts.error(error))
  }

  #end(job) {
    const { jobs, router, store, toasts } = this.#parts
    const entry = this.#entries.get(job.id)
    const isFollowed = jobs.unfollow(job)
    clearTimeout(entry?.timer)
    entry?.close?.()
    this.#entries.delete(job.id)
    if (job.status === "failed") toasts.error(job.error ?? { code: "internal" })
    if (job.status === "canceled" && entry?.close) toasts.show(t("jobs.canceled"))
    if (job.status !== "succeeded" || !jobs.canCancel(job)) return
    const open = () => router.go(paths.conversation(job.conversation_id))
    if (isFollowed && store.openConversationDocument?.space_id === job.space_id) open()
    else if (entry) toasts.show(t("jobs.branch_ready"), { action: { label: t("jobs.open"), run: open } })
  }
}

function shareOf(job) {
  return job.n_total > 0 ? Math.min(1, job.n_done / job.n_total) : 0
}
