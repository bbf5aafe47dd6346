// The user's bookmarks of the open conversation. They are loaded when they are first needed.
const PAGE = 200

export default class BookmarkActions {
  #api
  // The id of the conversation of which the bookmarks are loaded, and the ids of the marked messages.
  #conversationId = null
  #ids = new Set()

  constructor({ api }) {
    this.#api = api
  }

  // Whether a message is known to be marked.
  has(message) {
    return message.conversation_id === this.#conversationId && this.#ids.has(message.id)
  }

  // Marks a message, or removes its mark. Returns whether it is marked now.
  async toggle(message) {
    await this.#load(message.conversation_id)
    const isMarked = this.has(message)
    if (isMarked) await this.#api.removeBookmark(message.id)
    else await this.#api.addBookmark(message.id)
    if (isMarked) this.#ids.delete(message.id)
    else this.#ids.add(message.id)
    return !isMarked
  }

  async remove(message) {
    await this.#api.removeBookmark(message.id)
    this.#ids.delete(message.id)
  }

  // Returns the marked messages of a conversation by their position.
  async list(conversationId) {
    const found = []
    let page = { has_more: true, cursor: 0 }
    while (page.has_more) {
      page = await this.#api.bookmarks(conversationId, { after: page.cursor, limit: PAGE })
      found.push(...page.data)
    }
    this.#conversationId = conversationId
    this.#ids = new Set(found.map(({ id }) => id))
    return found
  }

  async #load(conversationId) {
    if (this.#conversationId !== conversationId) await this.list(conversationId)
  }
}
