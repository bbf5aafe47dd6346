// Lorebooks: the user's own, their entries, their links, and the World Info settings of a space.
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

  // `fields` are those of the API.
  change(id, fields) {
    return this.#api.changeLorebook(id, fields)
  }

  remove(id) {
    return this.#api.deleteLorebook(id)
  }

  // Returns `{ lorebook, warnings }`.
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

  // Calls the listener when a lorebook was imported. Returns the function that removes it.
  onImported(listener) {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  notifyImported() {
    for (const listener of this.#listeners) listener()
  }

  // Returns which entries a text activates, and why the others are not activated; with a conversation, together
  // with all its lorebooks.
  testText(bookId, text, conversationId = null) {
    return this.#api.tryLorebook(bookId, { text, ...(conversationId && { conversation_id: conversationId }) })
  }

  // `target` is `{ kind, id }`, its kind "spaces", "conversations" or "characters".
  async linked({ kind, id }) {
    return (await this.#api.lorebooksOf(kind, id)).lorebooks
  }

  async link({ kind, id }, books) {
    const ids = books.map((book) => book.id)
    return (await this.#api.linkLorebooks(kind, id, ids)).lorebooks
  }

  // Changes the World Info settings of a space.
  async changeLorebookSettings(space, rules) {
    const settings = withLorebookSettings(space.settings, rules)
    const body = { settings, settings_version: space.settings_version }
    this.#store.putSpace(await this.#api.changeSpace(space.id, body))
  }
}
