// What this tab knows. It applies what the socket says and tells the views that listen.
//
// Emits "session", "connection", "spaces" (the rail), "cast" (a space id), "providers",
// "open" (another room), "removed" (a room that one may not see any more) and, for the open room,
// "room" with what became different: "restored", "messages", "stream", "queue", "typing",
// "presence", "outbox".
import Emitter from "./base/emitter.js"
import Outbox from "./models/outbox.js"
import Room from "./models/room.js"
import Roster from "./models/roster.js"

export default class Store extends Emitter {
  user = null
  connection = "closed"
  providers = []
  room = null
  outbox = null
  #spaces = new Map()
  #conversations = new Map()
  #rosters = new Map()
  #socket
  #storage

  constructor({ socket, storage }) {
    super()
    this.#socket = socket
    this.#storage = storage
    socket.on("event", (event) => this.#takeEvent(event))
    socket.on("snapshot", (it) => this.#takeSnapshot(it))
    socket.on("state", (state) => this.#takeConnection(state))
    socket.on("refused", (it) => this.#takeRefusal(it))
  }

  // Who

  setUser(user) {
    this.user = user
    this.emit("session")
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

  setSpaces(spaces) {
    this.#spaces = new Map(spaces.map((space) => [space.id, space]))
    this.emit("spaces")
  }

  putSpace(space) {
    // The event carries no `my_role`: that is mine, not the room's.
    const known = this.#spaces.get(space.id)
    this.#spaces.set(space.id, { ...known, ...space, my_role: space.my_role ?? known?.my_role ?? null })
    this.emit("spaces")
  }

  removeSpace(id) {
    this.#spaces.delete(id)
    this.#conversations.delete(id)
    this.emit("spaces")
    if (this.openSpace?.id === id || this.openConversation?.space_id === id) this.emit("removed")
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
    for (const [spaceId, list] of this.#conversations) {
      this.#conversations.set(
        spaceId,
        list.filter((conversation) => conversation.id !== id),
      )
    }
    this.emit("spaces")
    if (this.room?.conversationId === id) this.emit("removed")
  }

  setRoster(spaceId, memberships) {
    this.#rosters.set(spaceId, new Roster(memberships))
    this.emit("cast", spaceId)
  }

  putMembership(membership) {
    const roster = this.#rosters.get(membership.space_id)
    if (!roster) return
    roster.put(membership)
    this.emit("cast", membership.space_id)
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
    this.outbox = new Outbox(this.#storage, conversationId)
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

  #takeConnection(state) {
    this.connection = state
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
      case "activity":
        return this.#takeActivity(event)
      case "unsubscribed":
        return this.#takeRefusal({ conversationId: event.conversation_id, error: { code: "not_found" } })
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

  #takeRefusal({ conversationId, error }) {
    if (error.code === "not_found" && this.room?.conversationId === conversationId) this.emit("removed")
  }
}

function spaceOf(event) {
  return event.space ?? event
}
