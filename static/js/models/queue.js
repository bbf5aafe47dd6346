// What the queue bar says: who speaks now, who is next and why, and who follows. Ids of memberships.
export function describe({ queue, stream }) {
  const { state, round, queued_run: queued, running_run: running } = queue
  const isSpeaking = running !== null || stream !== null
  const pending = pendingSpeakers(round, running)
  const coming =
    queued && pending[0] !== queued.speaker_space_membership_id
      ? [queued.speaker_space_membership_id, ...pending]
      : pending
  const [next = null, ...later] = coming
  return {
    state: isSpeaking && state === "idle" ? "generating" : state,
    now: running?.speaker_space_membership_id ?? stream?.membershipId ?? null,
    next: isSpeaking ? null : next,
    because: reason(isSpeaking ? running : queued, round),
    upcoming: isSpeaking ? coming : later,
    hasRound: round !== null,
  }
}

// Who of the round has not had a turn, without the one who speaks right now.
function pendingSpeakers(round, running) {
  return (round?.slots ?? [])
    .filter((slot) => slot.status === "pending")
    .filter((slot) => !running || running.round_id !== round.id || slot.position !== running.slot_position)
    .map((slot) => slot.membership_id)
}

function reason(run, round) {
  if (!run) return null
  const slot = (round?.slots ?? []).find(({ position }) => position === run.slot_position)
  return run.chosen_because ?? slot?.chosen_because ?? null
}
