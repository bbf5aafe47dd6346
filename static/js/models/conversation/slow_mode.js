// Slow mode: when the user may post again in a space. All times are in milliseconds of the server's clock.
const EXEMPT = ["owner", "moderator"]

export default class SlowMode {
  // By space: the newest post of this tab, and the end of the wait that the server named last.
  #posted = new Map()
  #refused = new Map()

  posted(spaceId, at) {
    this.#posted.set(spaceId, Math.max(at, this.#posted.get(spaceId) ?? 0))
  }

  refused(spaceId, until) {
    this.#refused.set(spaceId, until)
  }

  // Returns when the user may post again; 0: now. `messages` are loaded messages of the space.
  until(space, membership, messages) {
    if (!space?.slow_mode_s || !membership || EXEMPT.includes(membership.role)) return 0
    const last = messages.findLast((message) => isPostOf(membership, message))
    const newest = Math.max(this.#posted.get(space.id) ?? 0, last ? Date.parse(last.created_at) : 0)
    const until = newest > 0 ? newest + space.slow_mode_s * 1000 : 0
    return Math.max(until, this.#refused.get(space.id) ?? 0)
  }
}

function isPostOf(membership, message) {
  const isPost = message.role !== "assistant" && message.conversation_run_id === null
  return isPost && message.space_membership_id === membership.id
}
