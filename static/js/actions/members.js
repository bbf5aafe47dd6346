// Who is in the space: seating characters and changing their memberships.
export default class MemberActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  // The characters of one's library that do not sit here yet.
  async library(spaceId) {
    const { data } = await this.#api.characters()
    const present = new Set(this.#store.roster(spaceId).characters.map((member) => member.character_id))
    return data.filter((character) => !present.has(character.id) && character.owner_id === this.#store.user.id)
  }

  // `description` is either the flat fields of a form or `{ card }`, a whole card document.
  async addNew(spaceId, description) {
    const answer = await this.#api.createCharacter(description)
    return this.add(spaceId, (answer.character ?? answer).id)
  }

  async add(spaceId, characterId) {
    const membership = await this.#api.addCharacter(spaceId, characterId)
    this.#store.putMembership(membership)
    return membership
  }

  // "active", "muted" or "observer".
  async setParticipation(member, participation) {
    await this.#change(member, { participation })
  }

  async setTalkativeness(member, talkativeness) {
    await this.#change(member, { talkativeness })
  }

  // With whose models a character speaks; null is the default one. A model's name means something to
  // its own provider alone.
  async setProvider(member, providerId) {
    const { model: _, ...settings } = member.settings
    await this.#change(member, { llm_provider_id: providerId, settings })
  }

  async setModel(member, model) {
    const { model: _, ...settings } = member.settings
    await this.#change(member, { settings: model === "" ? settings : { ...settings, model } })
  }

  // "owner" hands the space over.
  async setRole(member, role) {
    await this.#change(member, { role })
  }

  // Who one plays, and by which other names one is addressed.
  // `displayName` null: the account's name; left out: as it is.
  async setPersona(member, { persona, aliases, displayName }) {
    const name = displayName === undefined ? {} : { display_name: displayName }
    await this.#change(member, { persona, aliases, ...name })
  }

  // To another place among the characters. It is shown at once; what the server made of it is read
  // again, for the others moved too. Returns whether there was anything to move.
  async moveTo(member, index) {
    const { space_id: spaceId } = member
    const position = this.#store.roster(spaceId).moveTo(member.id, index)
    if (position === null) return false
    this.#store.rosterChanged(spaceId)
    try {
      await this.#api.changeMembership(member.id, { position })
    } finally {
      const { data } = await this.#api.memberships(spaceId)
      this.#store.setRoster(spaceId, data)
    }
    return true
  }

  async remove(member) {
    await this.#api.removeMembership(member.id)
    this.#store.putMembership({ ...member, status: "removed" })
  }

  // What follows was my own doing: the page says so.
  async leave(member) {
    this.#store.setLeaving(member.space_id, true)
    try {
      await this.remove(member)
    } catch (error) {
      this.#store.setLeaving(member.space_id, false)
      throw error
    }
  }

  async #change(member, fields) {
    this.#store.putMembership(await this.#api.changeMembership(member.id, fields))
  }
}
