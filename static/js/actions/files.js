// Search, import and export of conversations and spaces.
const POLL_EVERY_MS = 400

export default class FileActions {
  #api

  constructor({ api }) {
    this.#api = api
  }

  search(query) {
    return this.#api.search(query)
  }

  roster(spaceId) {
    return this.#api.memberships(spaceId).then(({ data }) => data)
  }

  // Returns what an import would create; nothing is stored.
  previewChat(spaceId, file) {
    return this.#api.previewChat(spaceId, file)
  }

  // `names` maps names to memberships where the default of the server does not apply.
  importChat(spaceId, file, names) {
    const mapping = Object.keys(names).length > 0 ? JSON.stringify(names) : ""
    return this.#api.importChat(spaceId, file, mapping)
  }

  importSpace(file) {
    return this.#api.importSpace(file)
  }

  // Returns `{ name, blob }`.
  exportSpace(id) {
    return this.#api.exportSpace(id)
  }

  cancelImport(id) {
    return this.#api.cancelImport(id)
  }

  // Polls an import until it ends; `onStep` is called with its progress.
  async follow(id, onStep) {
    for (;;) {
      const now = await this.#api.importState(id)
      if (now.status !== "running") return now
      onStep(now)
      await new Promise((resolve) => setTimeout(resolve, POLL_EVERY_MS))
    }
  }
}
