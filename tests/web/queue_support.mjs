// The queue of a conversation in tests: its runs, its state, and what the page shows.
import { describe } from "../../static/js/models/queue/queue.js"

// The run of a slot; `member` null: the director chooses.
export function run(position, member, { round_id = "q", ...rest } = {}) {
  return {
    id: "a",
    round_id,
    slot_position: position,
    speaker_space_membership_id: member,
    chosen_because: null,
    ...rest,
  }
}

// The state of the queue as the server sends it.
export function queue({ state = "generating", round = null, queued = null, running = null }) {
  return { state, round, queued_run: queued, running_run: running }
}

// What the queue bar shows of it.
export function look(facts) {
  return describe({ queue: queue(facts), stream: null })
}
