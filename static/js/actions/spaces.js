// Spaces and conversations: load, open, create, rename, delete.
import { withQuickReplies } from "../models/conversation/quick_replies.js"
import { withTools } from "../models/characters/tools.js"

export default class SpaceActions {
  #api
  #store
  #socket

  constructor({ api, store, socket }) {
    this.#api = api
    this.#store = store
    this.#socket = socket
  }

  async load() {
    // The list is requested on the open connection, so only events of one round trip can fall between
    // the list and the subscription, not those of the time until the connection opens.
    await this.#socket.waitForConnection()
    const { data } = await this.#api.spaces()
    const open = await this.#openSpaceOutside(data)
    if (open) data.push(open)
    this.#store.setSpaces(data)
    await this.#socket.subscribeSpaces(data.map((space) => space.id))
    await Promise.all(data.map((space) => this.loadConversations(space.id)))
  }

  // Returns the open space if it is not in the list: an admin may open a space without being a member;
  // any other user has lost access.
  async #openSpaceOutside(listed) {
    const id = this.#store.openConversationDocument?.space_id
    if (!id || listed.some((space) => space.id === id)) return null
    try {
      return await this.#api.space(id)
    } catch (error) {
      if (error.status === 404) this.#store.removeSpace(id, null)
      return null
    }
  }

  async loadConversations(spaceId) {
    const { data } = await this.#api.conversations(spaceId)
    this.#store.setConversations(spaceId, data)
  }

  // Returns the conversation to open by default: the last one, else the first.
  home(lastId) {
    if (lastId && this.#store.conversation(lastId)) return lastId
    const [space] = this.#store.spaces
    return space ? this.firstOf(space.id) : null
  }

  // Returns the first conversation of a space.
  firstOf(spaceId) {
    const root = this.#store.space(spaceId)?.root_conversation_id
    return root ?? this.#store.conversations(spaceId)[0]?.id ?? null
  }

  // Loads a conversation that is not in the list, and its space. Throws `not_found` like the server.
  async loadConversation(conversationId) {
    const conversation = await this.#api.conversation(conversationId)
    if (!this.#store.space(conversation.space_id)) {
      this.#store.putSpace(await this.#api.space(conversation.space_id))
      await this.#socket.subscribeSpaces([conversation.space_id])
    }
    this.#store.putConversation(conversation)
  }

  // Opens a loaded conversation at once; resolves when its roster is loaded.
  open(conversationId) {
    const { space_id: spaceId } = this.#store.conversation(conversationId)
    this.#store.selectConversation(conversationId)
    return this.loadRoster(spaceId)
  }

  async loadRoster(spaceId) {
    const { data } = await this.#api.memberships(spaceId)
    this.#store.setRoster(spaceId, data)
  }

  async createSpace(name) {
    const space = await this.#api.createSpace({ name })
    this.#store.putSpace(space)
    await this.#socket.subscribeSpaces([space.id])
    await this.loadConversations(space.id)
    return space.root_conversation_id ?? this.#store.conversations(space.id)[0].id
  }

  async changeSpace(space, fields) {
    this.#store.putSpace(await this.#api.changeSpace(space.id, fields))
  }

  // Sets the tools that the characters of a space may call: `{ uses, servers }`.
  async changeTools(space, tools) {
    const settings = withTools(space.settings, tools)
    await this.changeSpace(space, { settings, settings_version: space.settings_version })
  }

  // Sets the texts and commands that members post with a button.
  async changeQuickReplies(space, replies) {
    const settings = withQuickReplies(space.settings, replies)
    await this.changeSpace(space, { settings, settings_version: space.settings_version })
  }

  async deleteSpace(id) {
    const answer = await this.#api.deleteSpace(id)
    if (answer?.job) this.#store.updateJob(answer.job)
    this.#store.removeSpace(id, "space_deleted")
  }

  async createConversation(spaceId, title) {
    const conversation = await this.#api.createConversation(spaceId, title ? { title } : {})
    this.#store.putConversation(conversation)
    return conversation.id
  }

  async renameConversation(id, title) {
    this.#store.putConversation(await this.#api.changeConversation(id, { title }))
  }

  async deleteConversation(id) {
    const answer = await this.#api.deleteConversation(id)
    if (answer?.job) this.#store.updateJob(answer.job)
    this.#store.removeConversation(id)
  }
}
