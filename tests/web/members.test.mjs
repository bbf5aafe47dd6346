// Several people in one space: rights, lost memberships, unread messages.
import assert from "node:assert/strict"
import test from "node:test"
import Emitter from "../../static/js/base/emitter.js"
import { may, mayManageMember, effectiveRole } from "../../static/js/models/members/rights.js"
import { unreadIn } from "../../static/js/models/conversation/unread.js"
import Store from "../../static/js/store.js"
import { MemoryStorage } from "./support.mjs"

class FakeSocket extends Emitter {
  dropped = []
  resubscribed = []
  subscribe() {}
  unsubscribe() {}
  resubscribe(id) {
    this.resubscribed.push(id)
  }
  dropSpace(id) {
    this.dropped.push(id)
  }
}

const membership = (fields = {}) => ({
  id: 10,
  space_id: 1,
  kind: "human",
  user_id: 5,
  role: "member",
  status: "active",
  participation: "active",
  position: 0,
  display_name: "Bob",
  ...fields,
})

const conversation = (id, fields = {}) => ({ id, space_id: 1, title: `C${id}`, last_seq: 0, ...fields })

// The store of Bob, a member of the Inn, with one conversation open.
function storeOfBob(user = {}) {
  const socket = new FakeSocket()
  const store = new Store({ socket: socket, storage: new MemoryStorage() })
  const emitted = []
  for (const name of ["removed", "rights"]) store.on(name, (detail) => emitted.push([name, detail]))
  store.setUser({ id: 5, display_name: "Bob", role: "user", ...user })
  store.setSpaces([{ id: 1, name: "The Inn", my_role: "member", root_conversation_id: 7 }])
  store.setConversations(1, [conversation(7), conversation(8, { last_seq: 5, last_read_seq: 2 })])
  store.selectConversation(7)
  store.setRoster(1, [membership(), membership({ id: 11, user_id: 6, role: "owner", display_name: "Ann" })])
  return { store, socket, emitted, receive: (event) => socket.emit("event", event) }
}

test("a removed membership closes the open conversation, with its name", () => {
  const { store, socket, emitted, receive } = storeOfBob()

  receive({ type: "membership_updated", space_id: 1, membership: membership({ status: "removed" }) })

  assert.deepEqual(emitted, [["removed", { reason: "removed", name: "The Inn", spaceId: 1 }]])
  assert.deepEqual(store.spaces, [])
  assert.deepEqual(socket.dropped, [1])
})

test("the open conversation is read again when its summaries may have been deleted or are switched", () => {
  const { socket, receive } = storeOfBob()
  const settings = (summaries, enabled = true) => ({
    type: "space_updated",
    space: { id: 1, settings: { memory: { enabled, summaries } } },
  })

  receive({ type: "memories_forgotten", space_id: 2, count: 1 })
  receive(settings({ chunk_messages: 20 }))
  assert.deepEqual(socket.resubscribed, [])

  receive({ type: "memories_forgotten", space_id: 1, count: 0 })
  assert.deepEqual(socket.resubscribed, [7])
  receive(settings({ enabled: false }))
  receive(settings({ enabled: false }))
  assert.deepEqual(socket.resubscribed, [7, 7])
  receive(settings({}))
  assert.deepEqual(socket.resubscribed, [7, 7, 7])
  receive(settings({}, false))
  assert.deepEqual(socket.resubscribed, [7, 7, 7, 7])
})

test("leaving is not reported as a removal", () => {
  const { store, emitted, receive } = storeOfBob()

  store.setLeaving(1, true)
  receive({ type: "membership_updated", space_id: 1, membership: membership({ status: "removed" }) })

  assert.equal(emitted[0][1].reason, "left")
})

test("a removal that arrives twice is emitted once", () => {
  const { emitted, receive } = storeOfBob()

  receive({ type: "membership_updated", space_id: 1, membership: membership({ status: "removed" }) })
  receive({ type: "unsubscribed", space_id: 1, reason: "removed" })

  assert.equal(emitted.length, 1)
})

test("the removal of another member changes nothing else", () => {
  const { store, emitted, receive } = storeOfBob()

  receive({
    type: "membership_updated",
    space_id: 1,
    membership: membership({ id: 11, user_id: 6, status: "removed", display_name: "Ann" }),
  })

  assert.deepEqual(emitted, [])
  assert.equal(store.roster(1).nameOf(11), "Ann")
})

test("an admin whose membership was removed keeps access", () => {
  const { store, emitted, receive } = storeOfBob({ role: "admin" })

  receive({ type: "membership_updated", space_id: 1, membership: membership({ status: "removed" }) })

  assert.equal(store.myMembership, null)
  assert.equal(store.space(1).my_role, "admin")
  assert.deepEqual(
    emitted.filter(([name]) => name === "removed"),
    [],
  )
})

test("a new role applies at once", () => {
  const { store, emitted, receive } = storeOfBob()

  receive({ type: "membership_updated", space_id: 1, membership: membership({ role: "guest" }) })

  assert.equal(store.space(1).my_role, "guest")
  assert.deepEqual(emitted, [["rights", 1]])
})

test("a change of the space does not change the user's role", () => {
  const { store, emitted, receive } = storeOfBob()

  receive({ type: "space_updated", space: { id: 1, name: "The Old Inn", my_role: null } })

  assert.equal(store.space(1).my_role, "member")
  assert.equal(store.space(1).name, "The Old Inn")
  assert.deepEqual(emitted, [])
})

test("a deleted conversation leaves the list, and its removal is emitted", () => {
  const { store, emitted, receive } = storeOfBob()

  receive({ type: "conversation_deleted", conversation_id: 8, space_id: 1 })
  receive({ type: "conversation_deleted", conversation_id: 7, space_id: 1 })

  assert.deepEqual(store.conversations(1), [])
  assert.deepEqual(emitted, [["removed", { reason: "conversation_deleted", name: "C7", spaceId: 1 }]])
})

test("a deleted space leaves the list with its conversations", () => {
  const { store, emitted, receive } = storeOfBob()

  receive({ type: "space_deleted", space_id: 1 })

  assert.deepEqual(store.spaces, [])
  assert.equal(store.conversation(8), null)
  assert.equal(emitted[0][1].reason, "space_deleted")
})

test("conversations of a space that is not listed any more are removed", () => {
  const { store } = storeOfBob()

  store.setSpaces([{ id: 2, name: "The Mill", my_role: "guest" }])

  assert.equal(store.conversation(8), null)
})

test("a refused subscription has an unknown reason", () => {
  const { socket, emitted } = storeOfBob()

  socket.emit("refused", { conversationId: 7, error: { code: "not_found" } })

  assert.deepEqual(emitted, [["removed", { reason: null, name: "The Inn", spaceId: 1 }]])
})

test("messages read in another window are read here", () => {
  const { store, receive } = storeOfBob()
  const before = store.unread(1)

  receive({ type: "activity", conversation_id: 8, seq: 6 })
  const more = store.unread(1)
  receive({ type: "read_updated", conversation_id: 8, last_read_seq: 6 })
  receive({ type: "read_updated", conversation_id: 8, last_read_seq: 3 })

  assert.deepEqual([before, more, store.unread(1)], [3, 4, 0])
})

test("a display name changed elsewhere applies here", () => {
  const { store, receive } = storeOfBob()

  receive({ type: "membership_updated", space_id: 1, membership: membership({ display_name: "Robert" }) })

  assert.equal(store.user.display_name, "Robert")
})

test("an observer has the rights of a guest, except moderators", () => {
  assert.equal(effectiveRole({ role: "member", isObserver: true }), "guest")
  assert.equal(effectiveRole({ role: "moderator", isObserver: true }), "moderator")
  assert.equal(effectiveRole({ role: "member" }), "member")
})

test("an admin manages every space", () => {
  for (const role of [null, "guest", "member"])
    assert.equal(may(effectiveRole({ role, isAdmin: true }), "delete_space"), true)
})

test("a guest may not invite or manage", () => {
  for (const act of ["invite", "people", "generate", "characters", "settings", "new_conversation", "prompt"])
    assert.equal(may("guest", act), false, act)
})

test("the owner and oneself cannot be removed", () => {
  assert.equal(mayManageMember("moderator", { role: "member" }, false), true)
  assert.equal(mayManageMember("moderator", { role: "owner" }, false), false)
  assert.equal(mayManageMember("moderator", { role: "moderator" }, true), false)
  assert.equal(mayManageMember("member", { role: "guest" }, false), false)
})

test("unread messages are those after the last read one", () => {
  assert.equal(unreadIn({ last_seq: 7, last_read_seq: 4 }), 3)
  assert.equal(unreadIn({ last_seq: 7 }), 7)
  assert.equal(unreadIn({ last_seq: 2, last_read_seq: 4 }), 0)
})

test("unsent messages of one user are not shown to another", () => {
  const storage = new MemoryStorage()
  const socket = new FakeSocket()
  const open = (id) => {
    const store = new Store({ socket: socket, storage })
    store.setUser({ id, display_name: "Somebody", role: "user" })
    store.selectConversation(7)
    return store.outbox
  }

  open(5).add("abc", "mine", 0)

  assert.deepEqual([open(5).entries.length, open(6).entries.length], [1, 0])
})
