// Actions of admins: statistics, users and runs of the server.
export default class AdminActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  stats(days) {
    return this.#api.adminStats({ days })
  }

  // `after` is the id of the last user that is shown.
  users({ text, status, after = null }) {
    return this.#api.adminUsers({ q: text, status, after })
  }

  // `fields` are those of the API. A change of the admin's own account is applied at once.
  async changeUser(user, fields) {
    const changed = await this.#api.changeUser(user.id, fields)
    // Documents of other users, and so this one, have no settings.
    const { settings } = this.#store.user
    if (changed.id === this.#store.user.id) this.#store.setUser({ ...this.#store.user, ...changed, settings })
    return changed
  }

  runs(filter, { before = null, limit = null } = {}) {
    return this.#api.adminRuns({
      status: filter.status,
      kind: filter.kind,
      error_code: filter.error,
      space_id: filter.space?.id,
      conversation_id: filter.conversation?.id,
      before,
      limit,
    })
  }

  cancel(run) {
    return this.#api.cancelRun(run.id)
  }
  recover() {
    return this.#api.reap()
  }
}
