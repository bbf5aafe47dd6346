// Asking people in by links, and coming in by one.
export default class InviteActions {
  #api
  #store

  constructor({ api, store = null }) {
    this.#api = api
    this.#store = store
  }

  // Coming in

  // What one would join.
  preview(token) {
    return this.#api.invitation(token)
  }

  // As whoever is signed in, else as a guest of this name. Answers `{ user, membership }`.
  join(token, displayName = null) {
    return this.#api.join(token, displayName === null ? {} : { display_name: displayName })
  }

  // With a new account. Answers the same.
  register(token, { displayName, username, password }) {
    return this.#api.register({ display_name: displayName, username, password, invite_token: token })
  }

  setPersona(membership, persona) {
    return this.#api.changeMembership(membership.id, { persona })
  }

  // Asking in

  async list(spaceId) {
    return (await this.#api.invites(spaceId)).data
  }

  // The one answer that holds the link. `maxUses` null: as many as come; `hours` null: as the server likes.
  create(spaceId, { role, maxUses, hours }) {
    return this.#api.createInvite(spaceId, { role, max_uses: maxUses, expires_in_hours: hours })
  }

  // First the new one, then the end of the old: whatever fails, there is one that works.
  async replace(spaceId, old, wish) {
    const made = await this.create(spaceId, wish)
    await this.revoke(old.id)
    return made
  }

  async revoke(id) {
    await this.#api.revokeInvite(id)
  }

  // Invitations of one person

  // Those of a space that can still be accepted.
  async pending(spaceId) {
    return (await this.#api.spaceInvitations(spaceId)).data
  }

  async revokeInvitation(id) {
    await this.#api.revokeInvitation(id)
  }

  // My own.
  async load() {
    this.#store.setInvitations((await this.#api.invitations()).data)
  }

  // Returns the new membership. A taken name is refused: send another one for this space.
  async accept(id, displayName = null) {
    const body = displayName === null ? {} : { display_name: displayName }
    const { membership } = await this.#api.acceptInvitation(id, body)
    this.#forget(id)
    return membership
  }

  async decline(id) {
    await this.#api.declineInvitation(id)
    this.#forget(id)
  }

  // Private

  #forget(id) {
    this.#store.setInvitations(this.#store.invitations.filter((it) => it.id !== id))
  }
}
