// Copilot actions: suggestions for the next message, and messages that the AI writes for the user.

export default class CopilotActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  // Requests suggestions; the texts arrive over the socket.
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

  // Turns the copilot off.
  takeOver() {
    return this.#change({ copilot_mode: "none" })
  }

  // Resumes a copilot that waits.
  resume() {
    return this.#api.resume(this.#store.openConversation.conversationId)
  }

  // Private

  // A membership event that arrived meanwhile is newer than the response: with a fast model the copilot
  // may have finished before the response arrives.
  async #change(fields) {
    const { myMembership: membership } = this.#store
    const changed = await this.#api.changeMembership(membership.id, fields)
    if (this.#store.myMembership === membership) this.#store.putMembership(changed)
  }
}
