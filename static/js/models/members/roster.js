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

  // The membership of the user who looks at this page.
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
  // Who can be asked to speak: muted ones too, observers never.
  get speakers() {
    return this.characters.filter((member) => member.participation !== "observer")
  }

  // Where a character stands among the characters, from 0; -1: it is none of them.
  indexOf(id) {
    return this.characters.findIndex((member) => member.id === id)
  }

  // Puts a character at another place among the characters, as the server will. Returns the
  // position to ask for; null when it stands there already, or there is no such place.
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
