// The user's own characters: import, edit, pictures, delete.
export default class LibraryActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  // Returns a preview of a file; nothing is stored.
  preview(file) {
    return this.#api.previewCard(file)
  }

  // Returns `{ character, warnings }`.
  importFile(file) {
    return this.#api.importCard(file)
  }

  character(id) {
    return this.#api.character(id)
  }

  mayChange({ owner_id: owner }) {
    return owner === this.#store.user.id || this.#store.user.role === "admin"
  }

  // `change` is `{ card?, share_whole_card?, regex_allowed? }`.
  save(id, change) {
    return this.#api.changeCharacter(id, change)
  }

  remove(id) {
    return this.#api.deleteCharacter(id)
  }

  setPicture(id, file) {
    return this.#api.setAvatar(id, file)
  }

  removePicture(id) {
    return this.#api.removeAvatar(id)
  }

  exportPath(id, { format, spec = null }) {
    return this.#api.characterExportPath(id, { format, spec })
  }

  // Reloads the roster of the open space if the character is in it, because its picture may have
  // changed.
  async reloadRoster(character) {
    const { openSpace: space, openRoster: roster } = this.#store
    if (!space || !roster.characters.some((it) => it.character_id === character.id)) return
    const { data } = await this.#api.memberships(space.id)
    this.#store.setRoster(space.id, data)
  }
}
