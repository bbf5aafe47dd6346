// Presets: the user's own, import, and the choice for a space or a member.
export default class PresetActions {
  #api
  #store
  #defaults = null

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  async listOwn() {
    return (await this.#api.presets()).data
  }

  get(id) {
    return this.#api.preset(id)
  }

  // Returns null if the preset was deleted or is not accessible.
  async find(id) {
    if (!id) return null
    try {
      return await this.#api.preset(id)
    } catch (error) {
      if (error.status === 404) return null
      throw error
    }
  }

  // Returns the default values, which do not change while the page is open.
  async defaults() {
    this.#defaults ??= await this.#api.presetDefaults()
    return this.#defaults
  }

  create(name, document = {}) {
    return this.#api.createPreset({ name, document })
  }

  save(id, body) {
    return this.#api.changePreset(id, body)
  }

  remove(id) {
    return this.#api.deletePreset(id)
  }

  // Returns a preview of a file; nothing is stored.
  preview(file) {
    return this.#api.previewPreset(file)
  }

  // Returns `{ preset, warnings }`.
  importFile(file) {
    return this.#api.importPreset(file)
  }

  isMine({ owner_id: ownerId, status }) {
    const { user } = this.#store
    return status === "active" && (ownerId === user.id || user.role === "admin")
  }

  // `id` null: no preset.
  async chooseForSpace(space, id) {
    const { preset_id: _, ...others } = space.settings?.preset ?? {}
    const preset = id === null ? others : { ...others, preset_id: id }
    const body = { settings: { ...space.settings, preset }, settings_version: space.settings_version }
    this.#store.putSpace(await this.#api.changeSpace(space.id, body))
  }

  async chooseForMember(member, id) {
    this.#store.putMembership(await this.#api.changeMembership(member.id, { preset_id: id }))
  }
}
