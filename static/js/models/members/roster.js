// The memberships of one space, ordered by position like on the server.
export default class Roster {
  #members = new Map()

  constructor(memberships = []) {
    this.reset(memberships)
  }

  reset(memberships) {
    this.#members = new Map(memberships.map((membership) => [membership.id, membership]))
  }

  put(membership) {
    this.#members.set(membership.id, membership)
  }

  // Returns the membership of an event with the user's own choices that are known here: events do not
  // contain them, because they are sent to all members.
  withOwnChoices(membership) {
    const known = this.byId(membership.id)
    const { active_persona_id = null, translate = null } = known ?? {}
    return { ...membership, active_persona_id, translate }
  }

  byId(id) {
    return this.#members.get(id) ?? null
  }

  nameOf(id) {
    return this.byId(id)?.display_name ?? null
  }

  // Returns the membership of a user.
  membershipOf(userId) {
    return this.active.find((member) => member.kind === "human" && member.user_id === userId) ?? null
  }

  get active() {
    return [...this.#members.values()].filter((member) => member.status === "active").sort(byPosition)
  }

  get people() {
    return this.active.filter((member) => member.kind === "human")
  }
  get characters() {
    return this.active.filter((member) => member.kind === "character")
  }
  // Characters that can be asked to speak: also muted ones, never observers.
  get speakers() {
    return this.characters.filter((member) => member.participation !== "observer")
  }

  // People who can take a turn. The copilot writes for those who have turned it on.
  get turnTakers() {
    return this.people.filter(
      (member) => member.participation === "active" && member.copilot_mode === "none" && !member.is_away,
    )
  }

  // Whether no character belongs to an audience: no character replies to such a whisper, and the schedule
  // reads past it. An unknown member is a person, as on the server.
  isForPeople(audience) {
    return audience.every((id) => this.byId(id)?.kind !== "character")
  }

  // Returns the index of a character among the characters, or -1.
  indexOf(id) {
    return this.characters.findIndex((member) => member.id === id)
  }

  // Moves a character among the characters, like the server will. Returns the position to request; null
  // if it does not change or does not exist.
  moveTo(id, index) {
    const before = this.characters
    const from = this.indexOf(id)
    if (from < 0 || from === index || !before[index]) return null
    const after = before.toSpliced(from, 1).toSpliced(index, 0, before[from])
    after.forEach((member, at) => this.put({ ...member, position: before[at].position }))
    return before[index].position
  }
}

function byPosition(a, b) {
  return a.position - b.position || a.id - b.id
}
