// Personas: which one the next post has, prefixes, the form, and what the outbox keeps.
import assert from "node:assert/strict"
import test from "node:test"
import ConversationActions from "../../static/js/actions/conversation.js"
import PersonaActions from "../../static/js/actions/personas.js"
import Emitter from "../../static/js/base/emitter.js"
import { group } from "../../static/js/models/conversation/message_grouping.js"
import Outbox from "../../static/js/models/conversation/outbox.js"
import { NO_PERSONA, currentPersona, formValues, readForm, readPrefix } from "../../static/js/models/personas/personas.js"
import Store from "../../static/js/store.js"
import { MemoryStorage } from "./support.mjs"

const CARA = { id: 1, name: "Cara", avatar_url: null, is_default: true }
const CARA_LEE = { id: 2, name: "Cara Lee", avatar_url: null, is_default: false }
const ZOE = { id: 3, name: "Zoë", avatar_url: "/z", is_default: false }
const ALL = [CARA, CARA_LEE, ZOE]

class FakeSocket extends Emitter {
  subscribe() {}
  unsubscribe() {}
  typing() {}
}

function openConversation() {
  const socket = new FakeSocket()
  const store = new Store({ socket, storage: new MemoryStorage() })
  store.setUser({ id: 1, display_name: "Ann" })
  store.setSpaces([{ id: 5, name: "Room", status: "active", my_role: "owner" }])
  store.setConversations(5, [{ id: 7, space_id: 5 }])
  const own = { id: 9, space_id: 5, kind: "human", user_id: 1, status: "active", role: "owner", position: 0 }
  store.setRoster(5, [{ ...own, display_name: "Ann", active_persona_id: null }])
  store.selectConversation(7)
  const posted = []
  const api = {
    postMessage: (_, body) => {
      posted.push(body)
      return new Promise(() => {})
    },
    personas: async () => ALL,
    changeMembership: async (id, change) => ({ ...store.myMembership, id, ...change }),
  }
  const personas = new PersonaActions({ api, store, local: new MemoryStorage() })
  const actions = new ConversationActions({ api, store, socket })
  return { actions, personas, posted, socket, store }
}

test("the persona is that of the space, else the default, else none", () => {
  assert.equal(currentPersona({ all: ALL, activeId: 3, choice: null }), ZOE)
  assert.equal(currentPersona({ all: ALL, activeId: null, choice: null }), CARA)
  assert.equal(currentPersona({ all: ALL, activeId: 99, choice: null }), CARA)
  assert.equal(currentPersona({ all: [ZOE], activeId: null, choice: null }), null)
  assert.equal(currentPersona({ all: ALL, activeId: null, choice: NO_PERSONA }), null)
})

test("without the list of personas the server chooses", () => {
  assert.equal(currentPersona({ all: null, activeId: 3, choice: null }), undefined)
})

test("the longest name at the beginning of a text is its persona", () => {
  assert.deepEqual(readPrefix("=cara Hi.", ALL), { persona: CARA, text: "Hi." })
  assert.deepEqual(readPrefix("=CARA LEE  Hi.", ALL), { persona: CARA_LEE, text: "Hi." })
  assert.deepEqual(readPrefix("=zoë\nHi.", ALL), { persona: ZOE, text: "Hi." })
  assert.deepEqual(readPrefix("=Cara", ALL), { persona: CARA, text: "" })
  for (const text of ["Cara Hi.", "=Bob Hi.", "=Carala Hi.", " =Cara Hi.", "="]) assert.equal(readPrefix(text, ALL), null)
  assert.equal(readPrefix("=Cara Hi.", null), null)
})

test("a message is sent under the persona of the moment at which it was written", async () => {
  const { actions, personas, posted, store } = openConversation()
  await personas.load()
  assert.equal(personas.current, CARA)

  actions.send(7, "Hello", { persona: personas.current })
  await personas.choose(ZOE)
  const [{ clientId }] = store.outbox.entries
  actions.retrySend(clientId)

  assert.deepEqual(
    posted.map((it) => it.persona_id),
    [1, 1],
  )
  assert.equal(personas.current, ZOE)
})

test("a message without a persona says so, and one of an unknown persona says nothing", async () => {
  const { actions, personas, posted } = openConversation()
  actions.send(7, "One", { persona: personas.current })
  await personas.load()
  await personas.choose(null)
  actions.send(7, "Two", { persona: personas.current })

  assert.deepEqual(
    posted.map((it) => it.persona_id),
    [undefined, null],
  )
  assert.equal("persona_id" in posted[0], false)
})

test("the outbox keeps the persona over a reload", () => {
  const storage = new MemoryStorage()
  new Outbox(storage, "1.7").add("a", "Hi.", 0, { persona: CARA })

  assert.deepEqual(new Outbox(storage, "1.7").entries[0].persona, CARA)
})

test("an event about the own membership keeps the chosen persona", async () => {
  const { personas, socket, store } = openConversation()
  await personas.load()
  await personas.choose(ZOE)

  const membership = { ...store.myMembership, active_persona_id: null, position: 3 }
  socket.emit("event", { type: "membership_updated", space_id: 5, membership })

  assert.equal(personas.current, ZOE)
  assert.equal(store.myMembership.position, 3)
})

test("messages of one author under several personas form several groups", () => {
  const at = Date.parse("2026-11-28T12:00:00")
  const entries = [CARA, CARA, ZOE, null].map((persona, n) => ({ key: n, authorId: 9, persona, at }))

  assert.deepEqual(
    group(entries).map((it) => it.startsGroup),
    [true, false, true, true],
  )
})

test("the form of a persona has its values, and a new one has those of SillyTavern", () => {
  const fields = { name: "Cara", title: "Cook", description: "Tall.", position: "at_depth", depth: 0, role: "user" }

  assert.deepEqual(formValues({ ...CARA, ...fields }), { ...fields, depth: "0" })
  const usual = { name: "", title: "", description: "", position: "in_prompt", depth: "2", role: "system" }
  assert.deepEqual(formValues(null), usual)
})

test("the depth and the role of a persona are saved where they apply", () => {
  const values = { name: "Cara", title: "", description: "", position: "at_depth", depth: "0", role: "user" }

  assert.deepEqual(readForm(values), { ...values, depth: 0 })
  assert.equal(readForm({ ...values, depth: " " }).depth, 2)
  const elsewhere = { name: "Cara", title: "", description: "", position: "note_top" }
  assert.deepEqual(readForm({ ...values, position: "note_top", depth: "-1" }), elsewhere)
})
