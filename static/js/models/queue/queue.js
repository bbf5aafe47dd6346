// The state of the queue bar: the current, next and finished speakers, and the available controls.
// Members are given by the ids of their memberships.

// Takes the place of an id as long as the director has not chosen the speaker.
export const DIRECTOR = "director"

export function describe({ queue, stream }) {
  const { state, round, queued_run: queued, running_run: running } = queue
  const isSpeaking = running !== null || stream !== null
  const isPrivate = isSpeaking ? running?.private === true : (queued ?? round)?.private === true
  const pending = pendingSlots(queue).map(speakerOfSlot)
  const coming =
    queued && !queued.private && pending[0] !== speakerOfRun(queued) ? [speakerOfRun(queued), ...pending] : pending
  const [next = null, ...later] = coming
  return {
    state: isSpeaking && state === "idle" ? "generating" : state,
    isSpeaking,
    isPrivate,
    now: (running && speakerOfRun(running)) ?? stream?.membershipId ?? null,
    next: isSpeaking ? null : next,
    reason: reasonOf(isSpeaking ? running : queued, round),
    upcoming: isSpeaking ? coming : later,
    isFinishingFirst: isFinishingFirst(queue),
    startsAt: isSpeaking ? null : (queued?.run_after ?? null),
    // The person for whose message the round waits, and until when; null: without limit.
    waitsFor: state === "waiting" ? pending[0] : null,
    deadline: state === "waiting" ? (round?.deadline_at ?? null) : null,
    hasRound: round !== null && !round.private,
    acts: actsOf(queue, isSpeaking),
    slots: slotsOf(queue),
  }
}

// Returns whether a member may skip the current turn: their own, that of a character if they may control
// the queue, and that of another person only as a moderator.
export function maySkip({ waitsFor }, { membershipId, mayControl, mayModerate }) {
  if (waitsFor === null) return mayControl
  return waitsFor === membershipId || mayModerate
}

// Returns the slots that can be reordered: the pending ones without that of the running run.
export function pendingSlots({ round, running_run: running }) {
  return (round?.slots ?? []).filter(
    (slot) => slot.status === "pending" && !isRunning(slot, round, running),
  )
}

// Returns the members whose pending slot was dropped by a new round, without those who speak in it.
// Returns none if the conversation is idle.
export function droppedBy(before, after) {
  const isActive = after.running_run !== null || after.queued_run !== null
  if (!before.round || before.round.id === after.round?.id || !isActive) return []
  const again = new Set((after.round?.slots ?? []).map((slot) => slot.membership_id))
  if (after.queued_run) again.add(after.queued_run.speaker_space_membership_id)
  const missed = pendingSlots(before).map((slot) => slot.membership_id)
  return [...new Set(missed)].filter((id) => id !== null && !again.has(id))
}

// Returns the speaker of a run; null for one that this user does not see.
export function speakerOfRun(run) {
  return run.private ? null : (run.speaker_space_membership_id ?? DIRECTOR)
}

function speakerOfSlot(slot) {
  return slot.membership_id ?? DIRECTOR
}

// Whether the running run belongs to an earlier round. It is unknown of two private ones.
function isFinishingFirst({ round, running_run: running }) {
  if (!running || !round || (running.private && round.private)) return false
  return running.round_id !== round.id
}

// Returns the controls that the server allows: pause an active round, resume a paused one when no run
// is active, retry a failed one. Only those who see the replies of a round may retry or skip one.
function actsOf({ round, queued_run: queued, running_run: running }, isSpeaking) {
  if (!round) return queued && !isSpeaking ? ["stop"] : []
  const skip = round.private ? [] : ["skip"]
  if (round.state === "failed") return round.private ? [] : ["retry", ...skip]
  if (round.state !== "paused") return ["pause", ...skip]
  return running || queued ? skip : ["resume", ...skip]
}

// Returns the slots of the round with their state: spoken, skipped, speaking, failed, next or pending.
function slotsOf(queue) {
  const { round, running_run: running } = queue
  const [first] = pendingSlots(queue)
  return (round?.slots ?? []).map((slot) => ({
    position: slot.position,
    membershipId: speakerOfSlot(slot),
    state: slotState(slot, { round, running, first }),
    reason: slot.chosen_because,
    skipReason: slot.skip_reason ?? null,
  }))
}

function slotState(slot, { round, running, first }) {
  if (slot.status !== "pending") return slot.status
  if (isRunning(slot, round, running)) return "speaking"
  if (slot !== first || running?.round_id === round.id) return "pending"
  return round.state === "failed" ? "failed" : "next"
}

function isRunning(slot, round, running) {
  return running !== null && running?.round_id === round.id && running.slot_position === slot.position
}

function reasonOf(run, round) {
  if (!run) return null
  const isOfRound = run.round_id === round?.id
  const slot = isOfRound && round?.slots.find(({ position }) => position === run.slot_position)
  return run.chosen_because ?? (slot || null)?.chosen_because ?? null
}
