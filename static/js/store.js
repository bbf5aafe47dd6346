// The state of this tab. Applies the events of the socket and informs the views.
//
// Emits "session", "connection", "spaces" (spaces and conversations), "roster" (a space id),
// "providers", "personas" (the user's own), "invitations" (the pending invitations of the user), "invitation_created", "your_turn", "rights"
// (the id of a space in which the role of the user has changed), "open" (another conversation is open),
// "removed" ({ reason, name, spaceId }: the open conversation is not accessible any more),
// "new_messages" (messages that this tab has not seen), "job", "memories" and "summaries" (an event of the
// socket about them), "translations" (what is known of translations has changed), "gap" (events without a
// `rev` may have been missed), and for the open conversation one event for each of CONVERSATION_EVENTS.
import Emitter from "./base/emitter.js"
import { effectiveRole } from "./models/members/rights.js"
import { unreadIn } from "./models/conversation/unread.js"
import Outbox from "./models/conversation/outbox.js"
import OpenConversation from "./models/conversation/open_conversation.js"
import Roster from "./models/members/roster.js"
import CopilotCandidates from "./models/conversation/copilot_candidates.js"
import { hasSummaries } from "./models/summaries/summary_settings.js"
import ServerClock from "./models/queue/server_clock.js"

export default class Store extends Emitter {
  user = null
  connection = "closed"
  providers = []
  // Invitations into spaces that the user has not answered yet.
  invitations = []
  // The personas of the user; null until they are needed.
  personas = null
  openConversation = null
  outbox = null
  candidates = new CopilotCandidates()
  serverClock = new ServerClock()
  #spaces = new Map()
  #conversations = new Map()
  #rosters = new Map()
  // Ids of the spaces that the user is leaving.
  #leaving = new Set()
  #socket
  #storage

  constructor({ socket, storage }) {
    super()
    this.#socket = socket
    this.#storage = storage
    socket.on("event", (event) => this.#applyEvent(event))
    socket.on("snapshot", (it) => this.#applySnapshot(it))
    socket.on("state", (state) => this.#setConnection(state))
    socket.on("time", (it) => this.serverClock.synchronize(it))
    socket.on("refused", (it) => this.#applyRefusal(it))
    socket.on("ready", () => this.emit("gap"))
  }

  // User

  setUser(user) {
    if (JSON.stringify(user) === JSON.stringify(this.user)) return
    this.user = user
    this.emit("session")
  }

  setInvitations(invitations) {
    this.invitations = invitations
    this.emit("invitations")
  }

  setProviders(providers) {
    this.providers = providers
    this.emit("providers")
  }

  // Whether only the built-in demo model is available. Users who are not admins do not see which
  // provider is the default.
  get isDemoOnly() {
    const chosen = this.providers.find((provider) => provider.is_default)
    if (chosen) return chosen.kind === "demo"
    return !this.providers.some((provider) => provider.kind !== "demo" && !provider.disabled)
  }

  // Spaces and conversations

  get spaces() {
    return [...this.#spaces.values()].filter((space) => space.status !== "deleted")
  }
  space(id) {
    return this.#spaces.get(id) ?? null
  }
  conversations(spaceId) {
    return this.#conversations.get(spaceId) ?? []
  }
  roster(spaceId) {
    return this.#rosters.get(spaceId) ?? new Roster()
  }
  hasRoster(spaceId) {
    return this.#rosters.has(spaceId)
  }
  conversation(id) {
    for (const list of this.#conversations.values()) {
      const found = list.find((conversation) => conversation.id === id)
      if (found) return found
    }
    return null
  }

  // Returns the number of unread messages in a space, except those of one conversation.
  unread(spaceId, exceptId = null) {
    return this.conversations(spaceId)
      .filter(({ id }) => id !== exceptId)
      .reduce((sum, conversation) => sum + unreadIn(conversation), 0)
  }

  setSpaces(spaces) {
    this.#spaces = new Map(
      spaces.map((space) => [space.id, { ...space, my_role: this.#effectiveRole(space.id, space.my_role) }]),
    )
    // Drops the conversations of spaces that are not listed any more.
    for (const id of this.#conversations.keys()) if (!this.#spaces.has(id)) this.#conversations.delete(id)
    this.emit("spaces")
  }

  putSpace(space) {
    // The event carries no `my_role`, because it is sent to all members.
    const known = this.#spaces.get(space.id)
    const mine = space.my_role ? this.#effectiveRole(space.id, space.my_role) : (known?.my_role ?? null)
    this.#spaces.set(space.id, { ...known, ...space, my_role: mine })
    this.emit("spaces")
    if (known && known.my_role !== mine) this.emit("rights", space.id)
    const isSwitched = hasSummaries(known?.settings) !== hasSummaries(this.space(space.id).settings)
    if (isSwitched) this.#readSummaryEnd(space.id)
  }

  // Marks a space that the user is about to leave, so that the removal is reported as "left".
  setLeaving(spaceId, isLeaving) {
    if (isLeaving) this.#leaving.add(spaceId)
    else this.#leaving.delete(spaceId)
  }

  // Removes a space that is not accessible any more. `reason` is "removed", "space_deleted", or null if
  // unknown.
  removeSpace(id, reason) {
    const space = this.#spaces.get(id)
    if (!space) return
    const isOpen = this.openConversationDocument?.space_id === id
    const why = reason === "removed" && this.#leaving.has(id) ? "left" : reason
    this.#leaving.delete(id)
    for (const map of [this.#spaces, this.#conversations, this.#rosters]) map.delete(id)
    this.#socket.dropSpace(id)
    this.emit("spaces")
    if (isOpen) this.emit("removed", { reason: why, name: space.name, spaceId: id })
  }

  setConversations(spaceId, conversations) {
    this.#conversations.set(spaceId, conversations)
    this.emit("spaces")
  }

  putConversation(conversation) {
    const list = this.conversations(conversation.space_id)
    const known = list.find(({ id }) => id === conversation.id)
    const merged = { ...known, ...conversation }
    const next = known ? list.map((it) => (it === known ? merged : it)) : [...list, merged]
    this.#conversations.set(conversation.space_id, next)
    this.emit("spaces")
  }

  removeConversation(id) {
    const conversation = this.conversation(id)
    if (!conversation) return
    const { space_id: spaceId, title } = conversation
    const others = this.conversations(spaceId).filter((it) => it.id !== id)
    this.#conversations.set(spaceId, others)
    this.emit("spaces")
    if (this.openConversation?.conversationId === id)
      this.emit("removed", { reason: "conversation_deleted", name: title, spaceId })
  }

  setRoster(spaceId, memberships) {
    this.#rosters.set(spaceId, new Roster(memberships))
    const membership = this.roster(spaceId).membershipOf(this.user?.id)
    if (membership) this.#applyMyMembership(membership)
    this.emit("roster", spaceId)
  }

  rosterChanged(spaceId) {
    this.emit("roster", spaceId)
  }

  putMembership(membership) {
    const { space_id: spaceId } = membership
    const isMine = membership.kind === "human" && membership.user_id === this.user?.id
    const isLost = isMine && membership.status === "removed" && this.user.role !== "admin"
    if (isLost) return this.removeSpace(spaceId, "removed")
    this.#rosters.get(spaceId)?.put(membership)
    if (isMine) this.#applyMyMembership(membership)
    this.emit("roster", spaceId)
  }

  // The open conversation

  get openConversationDocument() {
    return this.openConversation ? this.conversation(this.openConversation.conversationId) : null
  }
  get openSpace() {
    return this.openConversationDocument ? this.space(this.openConversationDocument.space_id) : null
  }
  get openRoster() {
    return this.roster(this.openConversationDocument?.space_id)
  }
  get myMembership() {
    return this.user ? this.openRoster.membershipOf(this.user.id) : null
  }

  selectConversation(conversationId) {
    this.closeConversation()
    this.openConversation = new OpenConversation({ conversationId, isForPeople: (ids) => this.openRoster.isForPeople(ids) })
    this.candidates = new CopilotCandidates()
    // Each user has an outbox of their own, because another user may sign in in the same tab.
    this.outbox = new Outbox(this.#storage, `${this.user.id}.${conversationId}`)
    this.emit("open")
    this.#socket.subscribe(conversationId, () => this.openConversation?.rev ?? null)
  }

  closeConversation() {
    if (!this.openConversation) return
    this.#socket.unsubscribe(this.openConversation.conversationId)
    this.openConversation = null
    this.outbox = null
    this.emit("open")
  }

  // Reports a change of the open conversation; `kind` is one of CONVERSATION_EVENTS.
  conversationChanged(kind) {
    this.emit(kind)
  }

  // Applies the response to a post, which may arrive before its event.
  applyPosted(openConversation, message) {
    if (this.openConversation !== openConversation) return
    this.#confirm(message)
    openConversation.timeline.put(message, openConversation.keyForClientId(message.client_id))
    this.emit("messages")
  }

  // Applies the running summary of a conversation, or null, if the conversation is open.
  applySummary(conversationId, summary) {
    if (this.openConversation?.conversationId !== conversationId) return
    const what = this.openConversation.applySummary(summary)
    if (what) this.emit(what)
  }

  markRead(conversationId, seq) {
    const conversation = this.conversation(conversationId)
    if (!conversation || (conversation.last_read_seq ?? 0) >= seq) return false
    const lastSeq = Math.max(conversation.last_seq ?? 0, seq)
    this.putConversation({ ...conversation, last_read_seq: seq, last_seq: lastSeq })
    return true
  }

  // Private

  #effectiveRole(spaceId, role, membership = this.roster(spaceId).membershipOf(this.user?.id)) {
    const isObserver = membership?.participation === "observer"
    return effectiveRole({ role, isAdmin: this.user?.role === "admin", isObserver })
  }

  // Takes over the role and the display name of the user's membership.
  #applyMyMembership(membership) {
    const space = this.#spaces.get(membership.space_id)
    const isActive = membership.status === "active"
    const mine = this.#effectiveRole(membership.space_id, isActive ? membership.role : null, membership)
    if (space && space.my_role !== mine) {
      this.#spaces.set(space.id, { ...space, my_role: mine })
      this.emit("spaces")
      this.emit("rights", space.id)
    }
    if (isActive && membership.display_name !== this.user.display_name)
      this.setUser({ ...this.user, display_name: membership.display_name })
  }

  // Reports the progress of a background job of the user.
  updateJob(job) {
    this.emit("job", job)
  }

  #setConnection(state) {
    this.connection = state
    // The server drops the results of a closed connection.
    if (state !== "open" && this.candidates.isPending) {
      this.candidates.failPending({ code: "network" })
      this.emit("candidates")
    }
    this.emit("connection")
  }

  #applySnapshot({ conversationId, answer }) {
    if (this.openConversation?.conversationId !== conversationId) return
    for (const message of answer.snapshot.messages) this.#confirm(message)
    const fresh = this.openConversation.restore(answer)
    this.emit("new_messages", fresh)
    this.emit("restored")
  }

  #applyEvent(event) {
    switch (event.type) {
      case "space_updated":
        return this.putSpace(event.space ?? event)
      case "membership_updated":
        return this.putMembership(this.roster(event.space_id).withOwnChoices(event.membership ?? event))
      case "conversation_updated":
        return this.putConversation(event.conversation ?? event)
      case "conversation_deleted":
        // Its memories are deleted with it.
        this.emit("memories", event)
        return this.removeConversation(event.conversation_id)
      case "space_deleted":
        return this.removeSpace(event.space_id, "space_deleted")
      case "activity":
        return this.#applyActivity(event)
      case "read_updated":
        return this.#applyRead(event)
      case "job_updated":
        return this.updateJob(event.job)
      case "your_turn":
      case "invitation_created":
        return this.emit(event.type, event)
      case "copilot_updated":
        return this.#applyCopilot(event)
      case "copilot_candidate":
      case "copilot_candidate_error":
        return this.candidates.apply(event) ? this.emit("candidates") : undefined
      case "memory_updated":
      case "memory_deleted":
      case "memory_state":
        return this.emit("memories", event)
      case "memories_forgotten":
        this.#readSummaryEnd(event.space_id)
        return this.emit("memories", event)
      case "summary_updated":
        this.applySummary(event.conversation_id, event.summary)
        return this.emit("summaries", event)
      case "unsubscribed":
        return this.#applyUnsubscribed(event)
      default:
        return this.#applyConversationEvent(event)
    }
  }

  #applyConversationEvent(event) {
    if (!this.openConversation || this.openConversation.conversationId !== event.conversation_id) return
    if (event.type === "message_created") this.#confirm(event.message)
    const what = this.openConversation.apply(event)
    if (what === "gap") return this.#socket.resubscribe(event.conversation_id)
    if (event.type === "message_created") this.emit("new_messages", [event.message])
    if (what) this.emit(what)
  }

  // Reads the open conversation of this space again: its snapshot states what the summary covers.
  #readSummaryEnd(spaceId) {
    const open = this.openConversationDocument
    if (open?.space_id === spaceId) this.#socket.resubscribe(open.id)
  }

  // Removes the outbox entry of a message that the server has stored.
  #confirm(message) {
    if (!message.client_id || !this.outbox?.has(message.client_id)) return
    this.openConversation.expect(message.client_id)
    this.outbox.remove(message.client_id)
  }

  #applyActivity({ conversation_id: id, seq }) {
    const conversation = this.conversation(id)
    if (!conversation || (conversation.last_seq ?? 0) >= seq) return
    this.putConversation({ ...conversation, last_seq: seq })
  }

  // The user has read on, possibly in another window.
  #applyRead({ conversation_id: id, last_read_seq: seq }) {
    const conversation = this.conversation(id)
    if (!conversation || (conversation.last_read_seq ?? 0) >= seq) return
    this.putConversation({ ...conversation, last_read_seq: seq })
  }

  // The copilot state of the user changes in all windows.
  #applyCopilot({ membership_id: id, copilot_mode, copilot_remaining_steps }) {
    for (const roster of this.#rosters.values()) {
      const membership = roster.byId(id)
      if (membership) this.putMembership({ ...membership, copilot_mode, copilot_remaining_steps })
    }
  }

  #applyUnsubscribed({ conversation_id: conversationId, space_id: spaceId }) {
    if (spaceId && !conversationId) this.removeSpace(spaceId, "removed")
    else this.#applyRefusal({ conversationId, error: { code: "not_found" } })
  }

  // The reason is unknown here: the conversation was deleted, or the user was removed from the space.
  #applyRefusal({ conversationId, error }) {
    if (error.code !== "not_found" || this.openConversation?.conversationId !== conversationId) return
    const { openSpace: space, openConversationDocument: conversation } = this
    this.emit("removed", { reason: null, name: space?.name, spaceId: conversation?.space_id ?? null })
  }
}
