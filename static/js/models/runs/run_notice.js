// The card of a run that ended without a message; shown until the conversation continues.
import { isPartialTextOf } from "../message/swipes.js"

export default class RunNotice {
  #run = null

  get run() {
    return this.#run
  }
  get isEmpty() {
    return this.#run === null
  }

  show({ type, run, error, tail }) {
    // Runs that ended as expected are not shown; a requested swipe that was not written is.
    const isRequested = addsSwipe(run)
    const isSuperseded = isRequested && run.canceled_because === "superseded_by_message"
    if (type === "run_skipped" && !isRequested) return
    if (wasOnlyPlanned(run, type.slice(4)) && !isSuperseded) return
    this.#run = { ...run, status: run.status ?? type.slice(4), error: error ?? null, tailSeq: tail?.seq ?? 0 }
  }

  // Restores the failed run of a snapshot, whose event may have been missed.
  restore(failed, tail) {
    if (failed && !failed.private && this.isEmpty) this.#run = { ...failed, tailSeq: tail?.seq ?? 0 }
  }

  // Finds the last failed or canceled run for a tab that was opened later.
  recall(runs, queue, tail) {
    const newest = [...runs].sort((a, b) => a.run_seq - b.run_seq).at(-1)
    if (!newest || newest.private || !["failed", "canceled"].includes(newest.status)) return
    if (wasOnlyPlanned(newest, newest.status)) return
    if (tail && Date.parse(tail.created_at) > Date.parse(newest.finished_at ?? newest.created_at)) return
    this.#run = { ...newest, tailSeq: tail?.seq ?? 0 }
    this.settle(queue, tail)
  }

  // Hides the card after a newer message, a newer run, the end of its round, or if the partial text was
  // kept.
  settle(queue, tail) {
    if (!this.#run) return
    const isOvertaken = (tail?.seq ?? 0) > this.#run.tailSeq
    const isRunning = queue.running_run !== null || queue.queued_run !== null
    const isKept = tail?.conversation_run_id === this.#run.id || isPartialTextOf(this.#run, tail)
    const isOver = this.#run.round_id && queue.round?.id !== this.#run.round_id
    if (isOvertaken || isRunning || isOver || isKept) this.clear()
  }

  clear() {
    this.#run = null
  }
}

// Whether the text of a run becomes a swipe of a message.
export function addsSwipe(run) {
  return run.kind === "regenerate" || run.kind === "continue"
}

// Canceled before it started: no reply was lost.
function wasOnlyPlanned(run, status) {
  return status === "canceled" && run.started_at === null
}
