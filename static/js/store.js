// What this tab knows. It applies what the socket says and tells the views that listen.
//
// Emits "session", "connection", "spaces" (the rail), "cast" (a space id), "providers",
// "invitations" (my own pending ones), "invitation_received" (there is one more),
// "rights" (a space in which I may do more or less than before), "open" (another openConversation), "removed"
// ({ reason, name, spaceId }: the open openConversation is not mine to see any more) and, for the open openConversation,
// "ROOM" with what became different: "restored", "messages", "stream", "queue", "typing",
// "presence", "outbox", "candidates".
import Emitter from "./base/emitter.js"
import { effectiveRole } from "./models/members/rights.js"
import { unreadIn } from "./models/conversation/unread.js"
import Outbox from "./models/conversation/outbox.js"
import OpenConversation from "./models/conversation/open_conversation.js"
import Roster from "./models/members/roster.js"
import CopilotCandidates from "./models/conversation/copilot_candidates.js"
import ServerClock from "./models/queue/server_clock.js"

export default class Store extends Emitter {
  user = null
  connection = "closed"
  providers = []
  // Of me into spaces; I have not answered them yet.
  invitations = []
  openConversation = null
  outbox = null
  candidates = new CopilotCandidates()
  serverClock = new ServerClock()
  #spaces = new Map()
  #conversations = new Map()
  #rosters = new Map()
  // Spaces that I am leaving by myself.
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
  }

  // Who

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

  // The built-in demo model speaks here. Who is no admin is not told which model is the default.
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

  conversation(id) {
    for (const list of this.#conversations.values()) {
      const found = list.find((conversation) => conversation.id === id)
      if (found) return found
    }
    return null
  }

  // What waits to be read in a space, but for one of its conversations.
  unread(spaceId, exceptId = null) {
    return this.conversations(spaceId)
      .filter(({ id }) => id !== exceptId)
      .reduce((sum, conversation) => sum + unreadIn(conversation), 0)
  }

  setSpaces(spaces) {
    this.#spaces = new Map(
      spaces.map((space) => [space.id, { ...space, my_role: this.#effectiveRole(space.id, space.my_role) }]),
    )
    // A space that is not listed any more takes along what was in it.
    for (const id of this.#conversations.keys()) if (!this.#spaces.has(id)) this.#conversations.delete(id)
    this.emit("spaces")
  }

  putSpace(space) {
    // The event carries no `my_role`: that is mine, not the openConversation's.
    const known = this.#spaces.get(space.id)
    const mine = space.my_role ? this.#effectiveRole(space.id, space.my_role) : (known?.my_role ?? null)
    this.#spaces.set(space.id, { ...known, ...space, my_role: mine })
    this.emit("spaces")
    if (known && known.my_role !== mine) this.emit("rights", space.id)
  }

  // I am about to leave, or stay after all: what follows was my own doing.
  setLeaving(spaceId, isLeaving) {
    if (isLeaving) this.#leaving.add(spaceId)
    else this.#leaving.delete(spaceId)
  }

  // A space that is not there for me any more: "removed", "space_deleted", or null when nobody said why.
  removeSpace(id, reason) {
    const space = this.#spaces.get(id)
    if (!space) return
    const isOpen = this.openConversationDocument?.space_id === id
    const why = reason === "removed" && this.#leaving.has(id) ? "left" : reason
    this.#leaving.delete(id)
    for (const map of [this.#spaces, this.#conversations, this.#rosters]) map.delete(id)
    this.#socket.forgetSpace(id)
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
    this.#conversations.set(
      spaceId,
      this.conversations(spaceId).filter((it) => it.id !== id),
    )
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

  // The open openConversation

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
    this.openConversation = new OpenConversation({ conversationId })
    this.candidates = new CopilotCandidates()
    // Whoever signs in after me in this tab has messages of their own.
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

  // The answer to a post came before its event.
  applyPosted(openConversation, message) {
    if (this.openConversation !== openConversation) return
    this.#confirm(message)
    openConversation.timeline.put(message, openConversation.keyForClientId(message.client_id))
    this.emit("messages")
  }

  markRead(conversationId, seq) {
    const conversation = this.conversation(conversationId)
    if (!conversation || (conversation.last_read_seq ?? 0) >= seq) return false
    this.putConversation({
      ...conversation,
      last_read_seq: seq,
      last_seq: Math.max(conversation.last_seq ?? 0, seq),
    })
    return true
  }

  // Private

  #effectiveRole(spaceId, role, membership = this.roster(spaceId).membershipOf(this.user?.id)) {
    const isObserver = membership?.participation === "observer"
    return effectiveRole({ role, isAdmin: this.user?.role === "admin", isObserver })
  }

  // My membership says what I may do, and how I am called.
  #applyMyMembership(membership) {
    const space = this.#spaces.get(membership.space_id)
    const isTaken = membership.status === "active"
    const mine = this.#effectiveRole(membership.space_id, isTaken ? membership.role : null, membership)
    if (space && space.my_role !== mine) {
      this.#spaces.set(space.id, { ...space, my_role: mine })
      this.emit("spaces")
      this.emit("rights", space.id)
    }
    if (isTaken && membership.display_name !== this.user.display_name)
      this.setUser({ ...this.user, display_name: membership.display_name })
  }

  // How a background job of mine stands.
  updateJob(job) {
    this.emit("job", job)
  }

  #setConnection(state) {
    this.connection = state
    // Nobody writes on for who does not listen.
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
        return this.putSpace(spaceOf(event))
      case "membership_updated":
        return this.putMembership(event.membership ?? event)
      case "conversation_updated":
        return this.putConversation(event.conversation ?? event)
      case "conversation_deleted":
        return this.removeConversation(event.conversation_id)
      case "space_deleted":
        return this.removeSpace(event.space_id, "space_deleted")
      case "activity":
        return this.#applyActivity(event)
      case "read_updated":
        return this.#applyRead(event)
      case "job_updated":
        return this.updateJob(event.job)
      case "invitation_created":
        return this.emit("invitation_received")
      case "copilot_updated":
        return this.#applyCopilot(event)
      case "copilot_candidate":
      case "copilot_candidate_error":
        return this.candidates.apply(event) ? this.emit("candidates") : undefined
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

  // A message of mine is in the database: its pending entry has done its work.
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

  // I have read on, perhaps in another window.
  #applyRead({ conversation_id: id, last_read_seq: seq }) {
    const conversation = this.conversation(id)
    if (!conversation || (conversation.last_read_seq ?? 0) >= seq) return
    this.putConversation({ ...conversation, last_read_seq: seq })
  }

  // What my copilot does is told to me in every window.
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

  // Whether the conversation is gone or my membership in its space, nobody said yet.
  #applyRefusal({ conversationId, error }) {
    if (error.code !== "not_found" || this.openConversation?.conversationId !== conversationId) return
    const { openSpace: space, openConversationDocument: conversation } = this
    this.emit("removed", { reason: null, name: space?.name, spaceId: conversation?.space_id ?? null })
  }
}

function spaceOf(event) {
  return event.space ?? event
}
