// Invite links, invitations, and joining by them.
export default class InviteActions {
  #api
  #store

  constructor({ api, store = null }) {
    this.#api = api
    this.#store = store
  }

  // Joining

  // Returns what an invite link leads to.
  preview(token) {
    return this.#api.invitation(token)
  }

  // Joins as the signed-in user, else as a guest with this name. Returns `{ user, membership }`.
  join(token, displayName = null) {
    return this.#api.join(token, displayName === null ? {} : { display_name: displayName })
  }

  // Joins with a new account. Returns the same.
  register(token, { displayName, username, password }) {
    return this.#api.register({ display_name: displayName, username, password, invite_token: token })
  }

  setPersona(membership, persona) {
    return this.#api.changeMembership(membership.id, { persona })
  }

  // Invite links

  async list(spaceId) {
    return (await this.#api.invites(spaceId)).data
  }

  // The only response that contains the link. `maxUses` null: unlimited; `hours` null: the default of
  // the server.
  create(spaceId, { role, maxUses, hours }) {
    return this.#api.createInvite(spaceId, { role, max_uses: maxUses, expires_in_hours: hours })
  }

  // Creates the new link before it revokes the old one, so that one of them works in any case.
  async replace(spaceId, old, options) {
    const made = await this.create(spaceId, options)
    await this.revoke(old.id)
    return made
  }

  async revoke(id) {
    await this.#api.revokeInvite(id)
  }

  // Invitations of users

  // Returns the invitations of a space that can still be accepted.
  async pending(spaceId) {
    return (await this.#api.spaceInvitations(spaceId)).data
  }

  async revokeInvitation(id) {
    await this.#api.revokeInvitation(id)
  }

  // Loads the invitations of the user.
  async load() {
    this.#store.setInvitations((await this.#api.invitations()).data)
  }

  // Returns the new membership. If the name is taken in the space, the server requires another one.
  async accept(id, displayName = null) {
    const body = displayName === null ? {} : { display_name: displayName }
    const { membership } = await this.#api.acceptInvitation(id, body)
    this.#removeInvitation(id)
    return membership
  }

  async decline(id) {
    await this.#api.declineInvitation(id)
    this.#removeInvitation(id)
  }

  // Private

  #removeInvitation(id) {
    this.#store.setInvitations(this.#store.invitations.filter((it) => it.id !== id))
  }
}
