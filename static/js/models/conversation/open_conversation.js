// The state of the open conversation: the snapshot and all later events.
//
// **Invariant:** durable events are applied in order of `rev`, each once. `apply` returns "gap" if an
// event is missing; the caller then subscribes again with the last `rev` and passes the snapshot to
// `restore`.
import { droppedBy } from "../queue/queue.js"
import RunNotice from "../runs/run_notice.js"
import RunStream from "../runs/run_stream.js"
import Timeline from "./timeline.js"
import TypingTracker from "./typing_tracker.js"

// The kinds of changes; the store emits one event for each.
export const CONVERSATION_EVENTS = [
  "restored",
  "messages",
  "stream",
  "queue",
  "typing",
  "presence",
  "outbox",
  "candidates",
  "approvals",
  "summary",
  "reply",
]

const IDLE = { state: "idle", round: null, queued_run: null, running_run: null, turnsLeft: null }

export default class OpenConversation {
  timeline
  notice = new RunNotice()
  rev = null
  stream = null
  queue = IDLE
  // Members whose slot was dropped by the current round.
  dropped = []
  // Present members with their state: "online" or "away".
  presence = new Map()
  // Tool calls that wait for the decision of a moderator, by id.
  approvals = new Map()
  // The seq of the last message that the running summary covers; null if prompts contain no summary.
  summarizedTo = null
  // The quotation of the message that the user answers, or null.
  replyTo = null
  // The text of a discarded reply that returns to the composer, or null.
  returnedText = null
  #goneAt = new Map()
  #keys = new Map()
  #clock

  // `isForPeople(audience)` returns whether no character belongs to an audience.
  constructor({ conversationId, clock = () => Date.now(), isForPeople }) {
    this.conversationId = conversationId
    this.timeline = new Timeline(isForPeople)
    this.#clock = clock
    this.typing = new TypingTracker(clock)
  }

  get isReady() {
    return this.rev !== null
  }
  get isRunning() {
    return this.queue.running_run !== null || this.stream !== null
  }

  // Returns when a member left, in milliseconds since 1970; null if the member is present or was never
  // seen.
  goneAt(membershipId) {
    return this.presence.has(membershipId) ? null : (this.#goneAt.get(membershipId) ?? null)
  }

  // The key of a pending message, which the sent message keeps.
  keyForClientId(clientId) {
    return `c-${clientId}`
  }
  keyForStream() {
    return this.rewritten ? this.timeline.keyOf(this.rewritten) : `r-${this.stream.runId}`
  }

  // The message for which the run writes another swipe.
  get rewritten() {
    return this.stream?.targetId ? this.timeline.byId(this.stream.targetId) : null
  }

  // Who sees the text of the stream; null: everyone.
  get audienceOfStream() {
    const { running_run: running } = this.queue
    return running?.id === this.stream?.runId ? (running?.audience ?? null) : null
  }

  // Applies a snapshot. Returns the messages that this tab has not seen before.
  restore({ rev, snapshot }) {
    const isFirst = !this.isReady
    const fresh = this.#restoreMessages(snapshot, isFirst)
    this.rev = rev
    this.typing.clear()
    this.#setQueue(snapshot)
    this.#setPresence({ members: snapshot.presence })
    this.stream = this.#restoredStream(snapshot)
    this.approvals = new Map((snapshot.tool_approvals ?? []).map((it) => [it.id, it]))
    this.summarizedTo = snapshot.summarized_to_seq ?? null
    this.notice.restore(snapshot.failed_run, this.timeline.tail)
    this.notice.settle(this.queue, this.timeline.tail)
    return isFirst ? [] : fresh
  }

  // Applies one event. Returns the kind of change, "gap", or null.
  apply(event) {
    if (!this.isReady) return null
    if (event.rev !== undefined && event.rev !== null) {
      if (event.rev <= this.rev) return null
      if (event.rev !== this.rev + 1) return "gap"
      this.rev = event.rev
    }
    return this.#applyEvent(event)
  }

  // Applies a new version of the running summary, or null if there is none. Returns the kind of change, or
  // null.
  applySummary(summary) {
    const { level = 1, to_seq: seq = null, is_usable: isUsable = false } = summary ?? {}
    const end = isUsable ? seq : null
    if (!this.isReady || level !== 1 || end === this.summarizedTo) return null
    this.summarizedTo = end
    return "summary"
  }

  #applyEvent(event) {
    switch (event.type) {
      case "typing_start":
        return this.#startStream(event)
      case "stream_chunk":
        return this.#appendToStream(event)
      case "stream_reset":
        return this.#resetStream(event)
      case "stream_complete":
        return event.status === "succeeded" ? null : this.#dropStream(event.run_id)
      case "typing_stop":
        return this.#dropStream(event.run_id)
      case "message_created":
      case "message_updated":
      case "message_hidden":
        return this.#applyMessage(event.message)
      case "reactions_updated":
        this.timeline.react(event)
        return "messages"
      case "run_failed":
      case "run_canceled":
      case "run_skipped":
        return this.#applyRunEnd(event)
      case "tool_approval_updated":
        return this.#applyApproval(event.approval)
      case "queue_updated":
        return this.#applyQueue(event)
      case "human_typing":
        return this.typing.set(event.membership_id, event.active) ? "typing" : null
      case "presence_updated":
        return this.#setPresence(event)
      case "resync":
        return "gap"
      // Something that this user does not see has changed: `rev` counts it, nothing is shown.
      case "rev_advanced":
        return null
      default:
        return null
    }
  }

  #startStream({ run_id: runId, membership_id: membershipId, target_message_id: targetId, base_length }) {
    const base = base_length ? (this.timeline.byId(targetId)?.content ?? "") : ""
    this.stream = new RunStream({ runId, membershipId, targetId, base, startedAt: this.#clock() })
    this.notice.clear()
    // The continued message is not loaded, or its text is not the newest.
    return base.length === (base_length ?? 0) ? "stream" : "gap"
  }

  #appendToStream(event) {
    if (this.stream?.runId !== event.run_id) return "gap"
    return this.stream.append(event) ? "stream" : "gap"
  }

  #resetStream(event) {
    if (this.stream?.runId !== event.run_id) return "gap"
    this.stream.reset(event.text ?? "")
    return "stream"
  }

  #applyApproval(approval) {
    if (approval.status === "pending") this.approvals.set(approval.id, approval)
    else this.approvals.delete(approval.id)
    return "approvals"
  }

  #dropStream(runId) {
    // Tool approvals end with their run.
    for (const [id, it] of this.approvals) if (it.run_id === runId) this.approvals.delete(id)
    if (this.stream?.runId !== runId) return null
    this.stream = null
    return "stream"
  }

  #applyMessage(message) {
    const key = this.#keyFor(message)
    if (this.#isOfStream(message)) this.stream = null
    this.timeline.put(message, key)
    if (message.visibility === "hidden" && this.replyTo?.id === message.id) this.replyTo = null
    this.typing.set(message.space_membership_id, false)
    this.notice.settle(this.queue, this.timeline.tail)
    return "messages"
  }

  // Remembers that a message with this client id has an entry in the timeline.
  expect(clientId) {
    this.#keys.set(clientId, this.keyForClientId(clientId))
  }

  #applyRunEnd({ type, run, error }) {
    const isOfStream = this.stream?.runId === run.id
    this.notice.show({ type, run, error: error ?? run.error, tail: this.timeline.tail })
    if (isOfStream && type !== "run_skipped") this.stream = null
    return "queue"
  }

  #applyQueue(event) {
    this.#setQueue(event)
    this.notice.settle(this.queue, this.timeline.tail)
    return "queue"
  }

  // Applies a conversation document of the API, unless newer events were applied.
  refresh(conversation) {
    if (!this.isReady || conversation.rev < this.rev) return
    this.#applyQueue({ ...conversation })
  }

  #setQueue(facts) {
    const before = this.queue
    this.queue = queueOf(facts, before)
    const isNew = before.round?.id !== this.queue.round?.id
    if (isNew || this.queue.state === "idle") this.dropped = droppedBy(before, this.queue)
  }

  // Records when members leave.
  #setPresence({ members }) {
    const present = presenceOf(members)
    for (const id of this.presence.keys()) if (!present.has(id)) this.#goneAt.set(id, this.#clock())
    this.presence = present
    return "presence"
  }

  // A run without text so far will begin with offset 0, or at the end of the text that it continues. That
  // of a run without a speaker has not begun.
  // The text of a private run is not sent to this user.
  #restoredStream({ stream, running_run: run }) {
    const running = run?.private || !run?.speaker_space_membership_id ? null : run
    if (!stream && !running) return null
    const runId = stream?.run_id ?? running.id
    const membershipId = stream?.membership_id ?? running.speaker_space_membership_id
    const startedAt = this.stream?.runId === runId ? this.stream.startedAt : this.#clock()
    const targetId = running?.id === runId ? running.target_message_id : null
    const text = stream?.text ?? ""
    const base = text.slice(0, stream?.base_length ?? 0)
    return new RunStream({ runId, membershipId, targetId, base, text, startedAt })
  }

  #restoreMessages(snapshot, isFirst) {
    const isFresh = (message) => isVisible(message) && !this.timeline.byId(message.id)
    const fresh = snapshot.messages.filter(isFresh)
    const keyFor = (message) => this.#keyFor(message)
    if (isFirst || snapshot.reset) this.timeline.reset(snapshot.messages.filter(isVisible), keyFor)
    else for (const message of snapshot.messages) this.timeline.put(message, keyFor(message))
    return fresh
  }

  // Whether a message contains the streamed text: as a new message, or as another swipe of its target.
  #isOfStream(message) {
    if (!this.stream) return false
    const { rewritten } = this
    if (rewritten?.id === message.id) return message.swipes?.count > (rewritten.swipes?.count ?? 1)
    return message.conversation_run_id === this.stream.runId
  }

  // Returns the key of the entry that this message replaces: its stream or the pending message.
  #keyFor(message) {
    return this.#isOfStream(message) ? this.keyForStream() : (this.#keys.get(message.client_id) ?? null)
  }
}

function isVisible(message) {
  return message.visibility !== "hidden"
}

// `auto_mode_turns_left` is missing in some events; the previous value is kept.
function queueOf(facts, before) {
  const { state, round = null, queued_run = null, running_run = null } = facts
  const { auto_mode_turns_left: turnsLeft = before.turnsLeft } = facts
  return { state, round, queued_run, running_run, turnsLeft }
}

function presenceOf(members) {
  return new Map((members ?? []).map(({ membership_id: id, state }) => [id, state]))
}
