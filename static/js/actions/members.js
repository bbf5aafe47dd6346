// Members of a space: adding characters and changing memberships.
export default class MemberActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  // Returns the user's characters that are not in the space.
  async library(spaceId) {
    const { data } = await this.#api.characters()
    const present = new Set(this.#store.roster(spaceId).characters.map((member) => member.character_id))
    return data.filter((character) => !present.has(character.id) && character.owner_id === this.#store.user.id)
  }

  // `description` is either the fields of a form or `{ card }`, a whole card document.
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

  // Whether a person is away and gets no turns.
  async setAway(member, isAway) {
    await this.#change(member, { is_away: isAway })
  }

  async setTalkativeness(member, talkativeness) {
    await this.#change(member, { talkativeness })
  }

  // Sets the provider of a character; null is the default. The model name is dropped because it belongs
  // to the previous provider.
  async setProvider(member, providerId) {
    const { model: _, ...settings } = member.settings
    await this.#change(member, { llm_provider_id: providerId, settings })
  }

  async setModel(member, model) {
    const { model: _, ...settings } = member.settings
    await this.#change(member, { settings: model === "" ? settings : { ...settings, model } })
  }

  // Sets a switch of a member's memory: `{ learn }` or `{ recall }`. Users may do this for themselves.
  async setMemory(member, change) {
    const current = this.#store.roster(member.space_id).byId(member.id) ?? member
    const memory = { ...current.settings?.memory, ...change }
    await this.#change(member, { settings: { ...current.settings, memory } })
  }

  // Sets whether the prompts of a character contain only what it heard.
  async setRemembersOnlyHeard(member, isOn) {
    const current = this.#store.roster(member.space_id).byId(member.id) ?? member
    await this.#change(member, { settings: { ...current.settings, remembers_only_what_it_heard: isOn } })
  }

  // "owner" transfers the space.
  async setRole(member, role) {
    await this.#change(member, { role })
  }

  // Sets the persona and the aliases. `displayName` null: the name of the account. The name and the choice of
  // translations are unchanged if they are undefined.
  async setPersona(member, { persona, aliases, displayName, translate }) {
    const name = displayName === undefined ? {} : { display_name: displayName }
    await this.#change(member, { persona, aliases, ...name, ...(translate && { translate }) })
  }

  // Moves a character among the characters. Shown at once; then the roster is read again, because
  // others have moved too. Returns whether the position changed.
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

  // Leaves the space; the removal is reported as the user's own.
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
