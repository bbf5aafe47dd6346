// Author's notes: of a conversation, of its space, of a character in it.
import { withNote } from "../models/presets/author_note.js"

export default class NoteActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  async ofConversation(conversation, note) {
    const settings = withNote(conversation.settings, note)
    this.#store.putConversation(await this.#api.changeConversation(conversation.id, { settings }))
  }

  async ofSpace(space, note) {
    const settings = withNote(space.settings, note)
    const body = { settings, settings_version: space.settings_version }
    this.#store.putSpace(await this.#api.changeSpace(space.id, body))
  }

  async ofMember(member, note) {
    const settings = withNote(member.settings, note)
    const body = { settings, settings_version: member.settings_version }
    this.#store.putMembership(await this.#api.changeMembership(member.id, body))
  }
}
