// Sign-in, sign-out and the user's own account.
export default class SessionActions {
  #api
  #store
  #socket

  constructor({ api, store, socket }) {
    this.#api = api
    this.#store = store
    this.#socket = socket
  }

  // Returns "signed_in", "signed_out" or "setup".
  async discover() {
    try {
      const { user } = await this.#api.session()
      this.#store.setUser(user)
      return "signed_in"
    } catch (error) {
      if (error.status !== 401) throw error
    }
    const { needed } = await this.#api.setupNeeded()
    return needed ? "setup" : "signed_out"
  }

  async setUp({ displayName, username, password }) {
    const { user } = await this.#api.setUp({ display_name: displayName, username, password })
    this.#store.setUser(user)
  }

  async signIn({ username, password }) {
    const { user } = await this.#api.signIn({ username, password })
    return user
  }

  // Signs out and reloads the page, so that nothing of the session stays on the screen.
  async signOut(to = "/") {
    await this.#api.signOut()
    this.#socket.stop()
    location.assign(to)
  }

  // Turns a guest into a registered user. The session is renewed.
  async keepAccount({ username, password }) {
    this.#applyUser(await this.#api.changeMe({ username, password }))
  }

  // The sessions of the user.
  async sessions() {
    return (await this.#api.sessions()).data
  }
  endSession(id) {
    return this.#api.endSession(id)
  }

  async changeProfile({ displayName, username }) {
    this.#applyUser(await this.#api.changeMe({ display_name: displayName, username }))
  }

  // Returns the number of API keys that are still active.
  async changePassword({ currentPassword, password, revokeApiKeys = false }) {
    const change = { current_password: currentPassword, password, revoke_api_keys: revokeApiKeys }
    const { api_keys_active, ...user } = await this.#api.changeMe(change)
    this.#applyUser(user)
    return api_keys_active
  }

  async changeLocale(locale) {
    this.#applyUser(await this.#api.changeMe({ locale }))
  }

  // Sets the language in which the user reads translations; null: that of the page.
  async changeReadingLanguage(language) {
    const { language: _, ...others } = this.#store.user.settings ?? {}
    this.#applyUser(await this.#api.changeMe({ settings: language ? { ...others, language } : others }))
  }

  async apiKeys() {
    return (await this.#api.apiKeys()).data
  }
  createApiKey(name) {
    return this.#api.createApiKey(name)
  }
  revokeApiKey(id) {
    return this.#api.revokeApiKey(id)
  }
  // Returns the first model that a program with this key can use, or null.
  async firstModelFor(key) {
    const { data } = await this.#api.modelsFor(key)
    return data[0]?.id ?? null
  }

  #applyUser(answer) {
    this.#store.setUser(answer.user ?? answer)
  }
}
