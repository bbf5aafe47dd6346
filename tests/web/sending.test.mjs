// Sending: a message is posted only in the conversation in which it was written.
import assert from "node:assert/strict"
import test from "node:test"
import ConversationActions from "../../static/js/actions/conversation.js"
import Emitter from "../../static/js/base/emitter.js"
import Store from "../../static/js/store.js"
import { MemoryStorage } from "./support.mjs"

class FakeSocket extends Emitter {
  sent = []
  subscribe() {}
  unsubscribe() {}
  typing(...args) {
    this.sent.push(args)
  }
}

// The actions of a user who has opened conversation 7; `posted` are the requests.
function openConversation() {
  const socket = new FakeSocket()
  const store = new Store({ socket, storage: new MemoryStorage() })
  store.setUser({ id: 1, display_name: "Ann" })
  store.selectConversation(7)
  const posted = []
  const api = {
    postMessage: (id, { content }) => {
      posted.push([id, content])
      return new Promise(() => {})
    },
  }
  return { actions: new ConversationActions({ api, store, socket }), posted, socket, store }
}

test("a message is posted in the conversation in which it was written", () => {
  const { actions, posted, store } = openConversation()

  assert.equal(actions.send(7, "Hello"), true)

  assert.deepEqual(posted, [[7, "Hello"]])
  assert.equal(store.outbox.entries.length, 1)
})

test("a message of another conversation is not posted", () => {
  const { actions, posted, store } = openConversation()
  store.selectConversation(8)

  assert.equal(actions.send(7, "Hello"), false)

  assert.deepEqual(posted, [])
  assert.equal(store.outbox.entries.length, 0)
})

test("a message is not posted when no conversation is open", () => {
  const { actions, posted, store } = openConversation()
  store.closeConversation()

  assert.equal(actions.send(7, "Hello"), false)

  assert.deepEqual(posted, [])
})

test("typing is reported for the conversation in which the user types", () => {
  const { actions, socket, store } = openConversation()

  actions.typing(7, true)
  store.selectConversation(8)
  actions.typing(7, false)

  assert.deepEqual(socket.sent, [[7, true]])
})

test("a message whose mentioned member has left is sent without the mention", async () => {
  const { store } = openConversation()
  const bodies = []
  const refused = Object.assign(new Error(), { code: "invalid_value", param: "mentions" })
  const api = {
    postMessage: (_, body) => {
      bodies.push(body)
      return body.mentions ? Promise.reject(refused) : new Promise(() => {})
    },
  }
  const actions = new ConversationActions({ api, store, socket: new FakeSocket() })

  actions.send(7, "@Bob?", { fields: { mentions: [3], is_ooc: true } })
  await new Promise((resolve) => setImmediate(resolve))

  assert.deepEqual(
    bodies.map(({ mentions, is_ooc: isOoc }) => [mentions, isOoc]),
    [
      [[3], true],
      [undefined, true],
    ],
  )
  assert.equal(store.outbox.entries.at(-1).state, "pending")
})
