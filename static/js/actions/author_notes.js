// Author's notes of a conversation, of its space and of a member.
import { withAuthorNote } from "../models/presets/author_note.js"

export default class AuthorNoteActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  async setForConversation(conversation, note) {
    const settings = withAuthorNote(conversation.settings, note)
    this.#store.putConversation(await this.#api.changeConversation(conversation.id, { settings }))
  }

  async setForSpace(space, note) {
    const settings = withAuthorNote(space.settings, note)
    const body = { settings, settings_version: space.settings_version }
    this.#store.putSpace(await this.#api.changeSpace(space.id, body))
  }

  async setForMember(member, note) {
    const settings = withAuthorNote(member.settings, note)
    const body = { settings, settings_version: member.settings_version }
    this.#store.putMembership(await this.#api.changeMembership(member.id, body))
  }
}
