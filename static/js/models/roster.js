// The cast of one space: people and characters by position, as the server orders them.
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

  byId(id) {
    return this.#members.get(id) ?? null
  }

  nameOf(id) {
    return this.byId(id)?.display_name ?? null
  }

  // The seat of the user who looks at this page.
  seatOf(userId) {
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
  // Who can be asked to speak: muted ones too, observers never.
  get speakers() {
    return this.characters.filter((member) => member.participation !== "observer")
  }

  // The position that `id` must get to move by `step` among the characters, or null at either end.
  positionAfterMove(id, step) {
    const list = this.characters
    const index = list.findIndex((member) => member.id === id)
    return list[index + step]?.position ?? null
  }
}

function byPosition(a, b) {
  return a.position - b.position || a.id - b.id
}
