// Tests in which order the spaces are loaded.
import assert from "node:assert/strict"
import test from "node:test"
import SpaceActions from "../../static/js/actions/spaces.js"
import Emitter from "../../static/js/base/emitter.js"
import Store from "../../static/js/store.js"

test("spaces are read on an open connection, and subscribed before their conversations are read", async () => {
  const steps = []
  const socket = new Emitter()
  socket.waitForConnection = async () => steps.push("connection")
  socket.subscribeSpaces = async (ids) => steps.push(`subscribe ${ids}`)
  const api = {
    async spaces() {
      steps.push("spaces")
      return { data: [{ id: 7, name: "Harbor Lights" }] }
    },
    async conversations(spaceId) {
      steps.push(`conversations ${spaceId}`)
      return { data: [] }
    },
  }
  const store = new Store({ socket, storage: null })

  await new SpaceActions({ api, store, socket }).load()

  assert.deepEqual(steps, ["connection", "spaces", "subscribe 7", "conversations 7"])
})
