// Actions in the open conversation: write, generate, control the queue, edit, read.
import { randomId } from "../base/ids.js"
import SlowMode from "../models/conversation/slow_mode.js"
import { isTargetGone, quoteOf } from "../models/conversation/quote.js"
import { hasReacted } from "../models/message/reactions.js"
import { hasSwipes } from "../models/message/swipes.js"

const PAGE = 60
// The number of messages around the requested one.
const PAGE_AROUND = 100
// The most messages of one response.
const MOST_AT_ONCE = 200

export default class ConversationActions {
  #api
  #store
  #socket
  #slowMode = new SlowMode()

  constructor({ api, store, socket }) {
    this.#api = api
    this.#store = store
    this.#socket = socket
  }

  // Writing

  // Shows the message as pending and sends it. Returns false, without sending it, if the conversation in
  // which it was written is not open. `persona` is kept with the message until it is sent; `fields` are
  // further fields of the post, `attachments` its uploaded pictures.
  send(conversationId, content, { persona = undefined, fields = {}, attachments = [] } = {}) {
    if (!this.#isOpen(conversationId)) return false
    const { openConversation, outbox } = this.#store
    const { replyTo } = openConversation
    const shown = { persona: persona && pick(persona), fields, replyTo, attachments }
    const entry = outbox.add(randomId(), content, Date.now(), shown)
    openConversation.replyTo = null
    this.#store.conversationChanged("reply")
    openConversation.expect(entry.clientId)
    this.#store.conversationChanged("outbox")
    this.#deliver(openConversation, outbox, entry)
    return true
  }

  // Returns when the user may post again in the open space, as a time of the server; 0: now.
  slowUntil() {
    const { openConversation, openSpace, myMembership } = this.#store
    return this.#slowMode.until(openSpace, myMembership, openConversation?.timeline.messages ?? [])
  }

  // Sends under the same client id: if the first attempt did arrive, the server returns that message.
  retrySend(clientId) {
    const { openConversation, outbox } = this.#store
    const entry = outbox.markPending(clientId)
    if (!entry) return Promise.resolve()
    openConversation.expect(clientId)
    this.#store.conversationChanged("outbox")
    return this.#deliver(openConversation, outbox, entry)
  }

  // Answers a message with the next post; null answers none.
  replyTo(message) {
    const { openConversation } = this.#store
    openConversation.replyTo = message && quoteOf(message)
    this.#store.conversationChanged("reply")
  }

  // Sends a reply whose target was deleted without the quotation.
  sendWithoutReply(clientId) {
    this.#store.outbox.dropReply(clientId)
    return this.retrySend(clientId)
  }

  // The text of a reply whose target was deleted returns to the composer, and that of a whisper to someone
  // who has left.
  discard(clientId) {
    const { openConversation, outbox } = this.#store
    const entry = outbox.entries.find((it) => it.clientId === clientId)
    if (entry && (isTargetGone(entry) || entry.error?.param === "audience")) {
      openConversation.returnedText = entry.content
      this.#store.conversationChanged("reply")
    }
    outbox.remove(clientId)
    this.#store.conversationChanged("outbox")
  }

  // `version` is the version that the user edited; the server refuses the edit if there is a newer one.
  // Resolves with the new message.
  async editMessage(message, content, version) {
    const edited = await this.#api.changeMessage(message.id, { content, expected_version: version })
    this.#applyMessage(edited)
    return edited
  }

  // Resolves with the texts of a message that edits have replaced, the newest first.
  async revisions(message) {
    return (await this.#api.revisions(message.id)).data
  }

  // Applies the current message that a refused edit has returned.
  applyMessage(message) {
    this.#applyMessage(message)
  }

  async setVisibility(message, visibility) {
    this.#applyMessage(await this.#api.changeMessage(message.id, { visibility }))
  }

  // Sets whether the memory may use a message.
  async setRemember(message, remember) {
    this.#applyMessage(await this.#api.changeMessage(message.id, { remember }))
  }

  // Sets whether a message is out of character.
  async setOutOfCharacter(message, isOoc) {
    this.#applyMessage(await this.#api.changeMessage(message.id, { is_ooc: isOoc }))
  }

  // Adds the user's reaction to a message, or removes it. The event shows it.
  async react(message, emoji) {
    const { myMembership } = this.#store
    const isAdded = !hasReacted(message, emoji, myMembership?.id)
    await (isAdded ? this.#api.react(message.id, emoji) : this.#api.unreact(message.id, emoji))
  }

  async deleteMessage(message) {
    await this.#api.deleteMessage(message.id)
    this.#applyMessage({ ...message, visibility: "hidden" })
  }

  // Swipes and branches

  async selectSwipe(message, position) {
    this.#applyMessage(await this.#api.selectSwipe(message.id, position))
  }

  // Both resolve with the conversation that contains the result, `{ conversationId }`, or with `{ job
  // }` while a long branch is created.
  async regenerate(message, { inPlace = false } = {}) {
    const planned = await this.#api.regenerate(this.#id, message.id, inPlace)
    const { conversation_id: conversationId, job } = planned
    return job ? { job } : { conversationId }
  }

  // The newest message is extended in its place, with what the instruction asks for.
  continueMessage(message, instruction = "") {
    return this.#api.continueMessage(this.#id, message.id, instruction)
  }

  async branch(message) {
    const { conversation, job } = await this.#api.branch(this.#id, message.id)
    if (job) return { job }
    this.#store.putConversation(conversation)
    return { conversationId: conversation.id }
  }

  typing(conversationId, active) {
    if (this.#isOpen(conversationId)) this.#socket.typing(conversationId, active)
  }

  // Generation

  // `audience`: null for a reply that everyone sees; undefined: the audience of the newest message.
  generate(speakerId = null, audience = undefined) {
    return this.#api.generate(this.#id, speakerId, audience)
  }
  stop() {
    return this.#api.stop(this.#id)
  }
  pause() {
    return this.#api.pause(this.#id)
  }
  resume() {
    return this.#api.resume(this.#id)
  }
  skip() {
    return this.#api.skip(this.#id)
  }
  retry() {
    return this.#api.retry(this.#id)
  }

  // Replaces the pending speakers of the round. If the round has changed meanwhile, loads its current
  // state before it throws.
  async changeRound(roundId, membershipIds) {
    const { openConversation } = this.#store
    const id = openConversation.conversationId
    try {
      this.#applyQueue(openConversation, await this.#api.changeRound(id, { round_id: roundId, slots: membershipIds }))
    } catch (error) {
      if (error.code === "stale_round") this.#applyQueue(openConversation, await this.#api.conversation(id))
      throw error
    }
  }

  // Reads the queue again: the turns left of auto mode are sent with the queue only.
  async readQueue() {
    const { openConversation } = this.#store
    this.#applyQueue(openConversation, await this.#api.conversation(openConversation.conversationId))
  }

  // Allows or refuses one tool call of a character.
  async decideTool(approvalId, isAllowed) {
    const { openConversation } = this.#store
    const decided = await this.#api.decideTool(approvalId, isAllowed)
    openConversation.approvals.delete(decided.id)
    this.#store.conversationChanged("approvals")
  }

  // Reading

  // `cursor`: `{ before }`, `{ after, before }` or `{ around }`.
  async page(conversationId, cursor) {
    const limit = cursor.around ? PAGE_AROUND : PAGE
    return this.#api.messages(conversationId, { ...cursor, limit })
  }

  // Resolves with the messages of the open conversation with these numbers, the first and the last included.
  async messagesBetween({ from, to }) {
    const limit = Math.min(to - from + 1, MOST_AT_ONCE)
    const { data } = await this.#api.messages(this.#id, { after: from - 1, before: to + 1, limit })
    return data
  }

  async markRead(seq, id = this.#id) {
    if (this.#store.markRead(id, seq)) await this.#api.markRead(id, seq)
  }

  async runs() {
    return (await this.#api.runs(this.#id)).data
  }
  promptOfRun(runId) {
    return this.#api.promptOfRun(runId)
  }
  // Returns the id of the run that wrote the shown text, or null. Each swipe has its own run; the
  // message names only that of the first.
  async runOf(message) {
    if (!hasSwipes(message)) return message.conversation_run_id
    const text = await this.#api.swipe(message.id, message.swipes.active)
    return text?.conversation_run_id ?? null
  }
  nextSpeaker() {
    return this.#api.nextSpeaker(this.#id)
  }
  promptPreview(speakerId) {
    return this.#api.promptPreview(this.#id, speakerId)
  }
  // Loads the card of a run that ended without a message before this page was opened.
  async loadRunNotice() {
    const { openConversation } = this.#store
    if (openConversation.isRunning || !openConversation.notice.isEmpty) return
    const { data } = await this.#api.runs(openConversation.conversationId)
    if (this.#store.openConversation !== openConversation || openConversation.isRunning) return
    openConversation.notice.recall(data, openConversation.queue, openConversation.timeline.tail)
    if (!openConversation.notice.isEmpty) this.#store.conversationChanged("queue")
  }

  // Private

  #isOpen(conversationId) {
    return this.#store.openConversation?.conversationId === conversationId
  }

  get #id() {
    return this.#store.openConversation.conversationId
  }

  async #deliver(openConversation, outbox, { clientId, content, persona, fields, replyTo, attachments = [] }) {
    const chosen = persona === undefined ? {} : { persona_id: persona?.id ?? null }
    const reply = replyTo ? { reply_to_id: replyTo.id } : {}
    const pictures = attachments.length > 0 ? { attachment_ids: attachments.map(({ id }) => id) } : {}
    const body = { ...fields, ...chosen, ...reply, ...pictures, content, client_id: clientId }
    try {
      if (attachments.length > 0) await this.#describe(attachments)
      const { message } = await this.#api.postMessage(openConversation.conversationId, body)
      this.#store.applyPosted(openConversation, message)
      this.#slowMode.posted(this.#store.openSpace?.id, Date.parse(message.created_at))
      // A user who posts at the end of the conversation has read it.
      this.markRead(message.seq, openConversation.conversationId).catch(() => {})
    } catch (error) {
      if (!outbox.has(clientId)) return
      // A mentioned member has left: its name in the text remains.
      if (error.param === "mentions" && fields?.mentions) {
        const { mentions: _, ...others } = fields
        return this.#deliver(openConversation, outbox, { clientId, content, persona, replyTo, fields: others, attachments })
      }
      const { code, param, message, retryAfter } = error
      if (code === "slow_mode")
        this.#slowMode.refused(this.#store.openSpace?.id, this.#store.serverClock.now() + retryAfter * 1000)
      outbox.markFailed(clientId, error.isNetwork ? "network" : { code, param, message, retryAfter })
      if (this.#store.openConversation === openConversation) this.#store.conversationChanged("outbox")
    }
  }

  // Stores the descriptions before the message is sent, because a reply may be written at once.
  async #describe(attachments) {
    const described = attachments.filter(({ alt }) => alt !== "")
    await Promise.all(described.map(({ id, alt }) => this.#api.describeAttachment(id, alt)))
  }

  #applyQueue(openConversation, conversation) {
    if (this.#store.openConversation !== openConversation) return
    openConversation.refresh(conversation)
    this.#store.conversationChanged("queue")
  }

  // Applies the result at once; the event will bring the same.
  #applyMessage(message) {
    const { openConversation } = this.#store
    if (openConversation?.conversationId !== message.conversation_id) return
    openConversation.timeline.put(message)
    this.#store.conversationChanged("messages")
  }
}

// What a pending message shows of its persona.
function pick({ id, name, avatar_url }) {
  return { id, name, avatar_url }
}
