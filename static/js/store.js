// What this tab knows. It applies what the socket says and tells the views that listen.
//
// Emits "session", "connection", "spaces" (the rail), "cast" (a space id), "providers",
// "invitations" (my own pending ones), "invited" (there is one more),
// "rights" (a space in which I may do more or less than before), "open" (another room), "removed"
// ({ reason, name, spaceId }: the open room is not mine to see any more) and, for the open room,
// "room" with what became different: "restored", "messages", "stream", "queue", "typing",
// "presence", "outbox", "suggestions".
import Emitter from "./base/emitter.js"
import { standing } from "./models/members/rights.js"
import { unreadIn } from "./models/conversation/unread.js"
import Outbox from "./models/conversation/outbox.js"
import Room from "./models/conversation/open_conversation.js"
import Roster from "./models/members/roster.js"
import Suggestions from "./models/conversation/copilot_candidates.js"
import ServerClock from "./models/queue/server_clock.js"

export default class Store extends Emitter {
  user = null
  connection = "closed"
  providers = []
  // Of me into spaces; I have not answered them yet.
  invitations = []
  room = null
  outbox = null
  suggestions = new Suggestions()
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
    socket.on("event", (event) => this.#takeEvent(event))
    socket.on("snapshot", (it) => this.#takeSnapshot(it))
    socket.on("state", (state) => this.#takeConnection(state))
    socket.on("time", (it) => this.serverClock.learn(it))
    socket.on("refused", (it) => this.#takeRefusal(it))
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
      spaces.map((space) => [space.id, { ...space, my_role: this.#standing(space.id, space.my_role) }]),
    )
    // A space that is not listed any more takes along what was in it.
    for (const id of this.#conversations.keys()) if (!this.#spaces.has(id)) this.#conversations.delete(id)
    this.emit("spaces")
  }

  putSpace(space) {
    // The event carries no `my_role`: that is mine, not the room's.
    const known = this.#spaces.get(space.id)
    const mine = space.my_role ? this.#standing(space.id, space.my_role) : (known?.my_role ?? null)
    this.#spaces.set(space.id, { ...known, ...space, my_role: mine })
    this.emit("spaces")
    if (known && known.my_role !== mine) this.emit("rights", space.id)
  }

  // I am about to leave, or stay after all: what follows was my own doing.
  leave(spaceId, isLeaving) {
    if (isLeaving) this.#leaving.add(spaceId)
    else this.#leaving.delete(spaceId)
  }

  // A space that is not there for me any more: "removed", "space_deleted", or null when nobody said why.
  loseSpace(id, reason) {
    const space = this.#spaces.get(id)
    if (!space) return
    const isOpen = this.openConversation?.space_id === id
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
    if (this.room?.conversationId === id)
      this.emit("removed", { reason: "conversation_deleted", name: title, spaceId })
  }

  setRoster(spaceId, memberships) {
    this.#rosters.set(spaceId, new Roster(memberships))
    const seat = this.roster(spaceId).seatOf(this.user?.id)
    if (seat) this.#takeMySeat(seat)
    this.emit("cast", spaceId)
  }

  castChanged(spaceId) {
    this.emit("cast", spaceId)
  }

  putMembership(membership) {
    const { space_id: spaceId } = membership
    const isMine = membership.kind === "human" && membership.user_id === this.user?.id
    const isLost = isMine && membership.status === "removed" && this.user.role !== "admin"
    if (isLost) return this.loseSpace(spaceId, "removed")
    this.#rosters.get(spaceId)?.put(membership)
    if (isMine) this.#takeMySeat(membership)
    this.emit("cast", spaceId)
  }

  // The open room

  get openConversation() {
    return this.room ? this.conversation(this.room.conversationId) : null
  }
  get openSpace() {
    return this.openConversation ? this.space(this.openConversation.space_id) : null
  }
  get openRoster() {
    return this.roster(this.openConversation?.space_id)
  }
  get mySeat() {
    return this.user ? this.openRoster.seatOf(this.user.id) : null
  }

  openRoom(conversationId) {
    this.closeRoom()
    this.room = new Room({ conversationId })
    this.suggestions = new Suggestions()
    // Whoever signs in after me in this tab has messages of their own.
    this.outbox = new Outbox(this.#storage, `${this.user.id}.${conversationId}`)
    this.emit("open")
    this.#socket.subscribe(conversationId, () => this.room?.rev ?? null)
  }

  closeRoom() {
    if (!this.room) return
    this.#socket.unsubscribe(this.room.conversationId)
    this.room = null
    this.outbox = null
    this.emit("open")
  }

  roomChanged(what) {
    this.emit("room", what)
  }

  // The answer to a post came before its event.
  takePosted(room, message) {
    if (this.room !== room) return
    this.#confirm(message)
    room.timeline.put(message, room.keyForClientId(message.client_id))
    this.emit("room", "messages")
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

  #standing(spaceId, role, seat = this.roster(spaceId).seatOf(this.user?.id)) {
    const isObserver = seat?.participation === "observer"
    return standing({ role, isAdmin: this.user?.role === "admin", isObserver })
  }

  // My seat says what I may do, and how I am called.
  #takeMySeat(seat) {
    const space = this.#spaces.get(seat.space_id)
    const isTaken = seat.status === "active"
    const mine = this.#standing(seat.space_id, isTaken ? seat.role : null, seat)
    if (space && space.my_role !== mine) {
      this.#spaces.set(space.id, { ...space, my_role: mine })
      this.emit("spaces")
      this.emit("rights", space.id)
    }
    if (isTaken && seat.display_name !== this.user.display_name)
      this.setUser({ ...this.user, display_name: seat.display_name })
  }

  // How a background job of mine stands.
  takeJob(job) {
    this.emit("job", job)
  }

  #takeConnection(state) {
    this.connection = state
    // Nobody writes on for who does not listen.
    if (state !== "open" && this.suggestions.isWaiting) {
      this.suggestions.lose({ code: "network" })
      this.emit("room", "suggestions")
    }
    this.emit("connection")
  }

  #takeSnapshot({ conversationId, answer }) {
    if (this.room?.conversationId !== conversationId) return
    for (const message of answer.snapshot.messages) this.#confirm(message)
    const fresh = this.room.restore(answer)
    this.emit("fresh", fresh)
    this.emit("room", "restored")
  }

  #takeEvent(event) {
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
        return this.loseSpace(event.space_id, "space_deleted")
      case "activity":
        return this.#takeActivity(event)
      case "read_updated":
        return this.#takeRead(event)
      case "job_updated":
        return this.takeJob(event.job)
      case "invitation_created":
        return this.emit("invited")
      case "copilot_updated":
        return this.#takeCopilot(event)
      case "copilot_candidate":
      case "copilot_candidate_error":
        return this.suggestions.take(event) ? this.emit("room", "suggestions") : undefined
      case "unsubscribed":
        return this.#takeUnsubscribed(event)
      default:
        return this.#takeRoomEvent(event)
    }
  }

  #takeRoomEvent(event) {
    if (!this.room || this.room.conversationId !== event.conversation_id) return
    if (event.type === "message_created") this.#confirm(event.message)
    const what = this.room.apply(event)
    if (what === "gap") return this.#socket.resubscribe(event.conversation_id)
    if (event.type === "message_created") this.emit("fresh", [event.message])
    if (what) this.emit("room", what)
  }

  // A message of mine is in the database: its pending entry has done its work.
  #confirm(message) {
    if (!message.client_id || !this.outbox?.has(message.client_id)) return
    this.room.expect(message.client_id)
    this.outbox.remove(message.client_id)
  }

  #takeActivity({ conversation_id: id, seq }) {
    const conversation = this.conversation(id)
    if (!conversation || (conversation.last_seq ?? 0) >= seq) return
    this.putConversation({ ...conversation, last_seq: seq })
  }

  // I have read on, perhaps in another window.
  #takeRead({ conversation_id: id, last_read_seq: seq }) {
    const conversation = this.conversation(id)
    if (!conversation || (conversation.last_read_seq ?? 0) >= seq) return
    this.putConversation({ ...conversation, last_read_seq: seq })
  }

  // What my copilot does is told to me in every window.
  #takeCopilot({ membership_id: id, copilot_mode, copilot_remaining_steps }) {
    for (const roster of this.#rosters.values()) {
      const seat = roster.byId(id)
      if (seat) this.putMembership({ ...seat, copilot_mode, copilot_remaining_steps })
    }
  }

  #takeUnsubscribed({ conversation_id: conversationId, space_id: spaceId }) {
    if (spaceId && !conversationId) this.loseSpace(spaceId, "removed")
    else this.#takeRefusal({ conversationId, error: { code: "not_found" } })
  }

  // Whether the conversation is gone or my seat in its space, nobody said yet.
  #takeRefusal({ conversationId, error }) {
    if (error.code !== "not_found" || this.room?.conversationId !== conversationId) return
    const { openSpace: space, openConversation: conversation } = this
    this.emit("removed", { reason: null, name: space?.name, spaceId: conversation?.space_id ?? null })
  }
}

function spaceOf(event) {
  return event.space ?? event
}
