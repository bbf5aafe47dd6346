// The card that stands for a run which left no message: shown until the room has moved on.
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
    // Whose turn made no sense any more needs no word; who asked for another text waits for it.
    const isWished = run.kind === "regenerate"
    const isSuperseded = isWished && run.canceled_because === "superseded_by_message"
    if (type === "run_skipped" && !isWished) return
    if (wasOnlyPlanned(run, type.slice(4)) && !isSuperseded) return
    this.#run = { ...run, status: run.status ?? type.slice(4), error: error ?? null, tailSeq: tail?.seq ?? 0 }
  }

  // What a snapshot says has failed; an event that told it may have been missed.
  restore(failed, tail) {
    if (failed && this.isEmpty) this.#run = { ...failed, tailSeq: tail?.seq ?? 0 }
  }

  // What a tab that opens the conversation later finds among the newest runs.
  recall(runs, queue, tail) {
    const newest = [...runs].sort((a, b) => a.run_seq - b.run_seq).at(-1)
    if (!newest || !["failed", "canceled"].includes(newest.status)) return
    if (wasOnlyPlanned(newest, newest.status)) return
    if (tail && Date.parse(tail.created_at) > Date.parse(newest.finished_at ?? newest.created_at)) return
    this.#run = { ...newest, tailSeq: tail?.seq ?? 0 }
    this.settle(queue, tail)
  }

  // A newer message, a newer run or the end of its round makes it history; a kept partial text says
  // it by itself.
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

// Held or stopped before it began: nobody saw a reply, so none was lost.
function wasOnlyPlanned(run, status) {
  return status === "canceled" && run.started_at === null
}
