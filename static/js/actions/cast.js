// Who is in the space: seating characters and changing their seats.
export default class CastActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  // The characters of one's library that do not sit here yet.
  async library(spaceId) {
    const { data } = await this.#api.characters()
    const seated = new Set(this.#store.roster(spaceId).characters.map((member) => member.character_id))
    return data.filter((character) => !seated.has(character.id) && character.owner_id === this.#store.user.id)
  }

  // `description` is either the flat fields of a form or `{ card }`, a whole card document.
  async addNew(spaceId, description) {
    const answer = await this.#api.createCharacter(description)
    return this.seat(spaceId, (answer.character ?? answer).id)
  }

  async seat(spaceId, characterId) {
    const membership = await this.#api.seatCharacter(spaceId, characterId)
    this.#store.putMembership(membership)
    return membership
  }

  async mute(member, muted) {
    await this.#change(member, { participation: muted ? "muted" : "active" })
  }

  async setTalkativeness(member, talkativeness) {
    await this.#change(member, { talkativeness })
  }

  // One place up (-1) or down (+1). Positions of the others follow, so the whole cast is read again.
  async move(member, step) {
    const roster = this.#store.roster(member.space_id)
    const position = roster.positionAfterMove(member.id, step)
    if (position === null) return false
    await this.#api.changeMembership(member.id, { position })
    const { data } = await this.#api.memberships(member.space_id)
    this.#store.setRoster(member.space_id, data)
    return true
  }

  async remove(member) {
    await this.#api.removeMembership(member.id)
    this.#store.putMembership({ ...member, status: "removed" })
  }

  async #change(member, fields) {
    this.#store.putMembership(await this.#api.changeMembership(member.id, fields))
  }
}
