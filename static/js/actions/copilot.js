// What the AI does in my place: suggests what I might say, or speaks for me a few texts long.

export default class CopilotActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  // The texts come over the socket.
  async suggest(count, instruction) {
    const { room, suggestions, mySeat } = this.#store
    const ticket = suggestions.begin(count)
    this.#store.roomChanged("suggestions")
    const wish = { membership_id: mySeat.id, count, ...(instruction ? { instruction } : {}) }
    try {
      const { generation_id: id } = await this.#api.suggest(room.conversationId, wish)
      suggestions.begun(ticket, id)
    } catch (error) {
      suggestions.refused(ticket)
      throw error
    } finally {
      if (this.#store.room === room) this.#store.roomChanged("suggestions")
    }
  }

  forget() {
    this.#store.suggestions.clear()
    this.#store.roomChanged("suggestions")
  }

  turnOn(steps) {
    return this.#change({
      copilot_mode: "full",
      copilot_remaining_steps: steps,
      copilot_conversation_id: this.#store.room.conversationId,
    })
  }

  // I speak for myself again.
  takeOver() {
    return this.#change({ copilot_mode: "none" })
  }

  // It waits to be told to go on.
  goOn() {
    return this.#api.resume(this.#store.room.conversationId)
  }

  // Private

  // What was told of the seat meanwhile is newer than the answer: with a quick model the copilot may
  // have said all it had to say before that comes.
  async #change(fields) {
    const { mySeat: seat } = this.#store
    const changed = await this.#api.changeMembership(seat.id, fields)
    if (this.#store.mySeat === seat) this.#store.putMembership(changed)
  }
}
