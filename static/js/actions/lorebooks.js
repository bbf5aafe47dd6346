// Lorebooks: one's library, their entries, where they take part, and how they are found there.
import { withLorebookSettings } from "../models/lorebooks/lorebook_settings.js"

export default class LorebookActions {
  #api
  #store
  #listeners = new Set()

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  async list() {
    return (await this.#api.lorebooks()).data
  }

  open(id) {
    return this.#api.lorebook(id)
  }

  create(name) {
    return this.#api.createLorebook({ name })
  }

  // `fields` as the API takes them.
  change(id, fields) {
    return this.#api.changeLorebook(id, fields)
  }

  remove(id) {
    return this.#api.deleteLorebook(id)
  }

  // Answers `{ lorebook, warnings }`.
  importFile(file) {
    return this.#api.importLorebook(file)
  }

  createEntry(bookId, fields) {
    return this.#api.createLoreEntry(bookId, fields)
  }

  changeEntry(entry, fields) {
    return this.#api.changeLoreEntry(entry.lorebook_id, entry.id, fields)
  }

  removeEntry(entry) {
    return this.#api.deleteLoreEntry(entry.lorebook_id, entry.id)
  }

  // A book came in by a file. Returns how to stop listening.
  onImported(listener) {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  notifyImported() {
    for (const listener of this.#listeners) listener()
  }

  // Which entries a text wakes, and why not the others.
  testText(bookId, text) {
    return this.#api.tryLorebook(bookId, text)
  }

  // `target` is `{ kind, id }`, its kind "spaces", "conversations" or "characters".
  async linked({ kind, id }) {
    return (await this.#api.lorebooksOf(kind, id)).lorebooks
  }

  async link({ kind, id }, books) {
    const ids = books.map((book) => book.id)
    return (await this.#api.linkLorebooks(kind, id, ids)).lorebooks
  }

  // How a space finds its lore.
  async changeLorebookSettings(space, rules) {
    const settings = withLorebookSettings(space.settings, rules)
    const body = { settings, settings_version: space.settings_version }
    this.#store.putSpace(await this.#api.changeSpace(space.id, body))
  }
}
