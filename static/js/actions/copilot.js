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
    const { openConversation, candidates, myMembership } = this.#store
    const ticket = candidates.start(count)
    this.#store.conversationChanged("candidates")
    const request = { membership_id: myMembership.id, count, ...(instruction ? { instruction } : {}) }
    try {
      const { generation_id: id } = await this.#api.suggest(openConversation.conversationId, request)
      candidates.started(ticket, id)
    } catch (error) {
      candidates.failed(ticket)
      throw error
    } finally {
      if (this.#store.openConversation === openConversation) this.#store.conversationChanged("candidates")
    }
  }

  clearCandidates() {
    this.#store.candidates.clear()
    this.#store.conversationChanged("candidates")
  }

  turnOn(steps) {
    return this.#change({
      copilot_mode: "full",
      copilot_remaining_steps: steps,
      copilot_conversation_id: this.#store.openConversation.conversationId,
    })
  }

  // I speak for myself again.
  takeOver() {
    return this.#change({ copilot_mode: "none" })
  }

  // It waits to be told to go on.
  resume() {
    return this.#api.resume(this.#store.openConversation.conversationId)
  }

  // Private

  // What was told of the membership meanwhile is newer than the answer: with a quick model the copilot may
  // have said all it had to say before that comes.
  async #change(fields) {
    const { myMembership: membership } = this.#store
    const changed = await this.#api.changeMembership(membership.id, fields)
    if (this.#store.myMembership === membership) this.#store.putMembership(changed)
  }
}
