// Pictures of messages: uploads before a message is sent, their texts and sizes, and which files they are.
import assert from "node:assert/strict"
import test from "node:test"
import ConversationActions from "../../static/js/actions/conversation.js"
import PictureActions from "../../static/js/actions/pictures.js"
import Emitter from "../../static/js/base/emitter.js"
import { isCardPicture } from "../../static/js/models/files/picture_file.js"
import { pictureText, shownSize, textOf } from "../../static/js/models/message/pictures.js"
import { doesAnySee } from "../../static/js/models/providers/vision.js"
import Store from "../../static/js/store.js"
import { MemoryStorage } from "./support.mjs"

const settled = () => new Promise((resolve) => setImmediate(resolve))
const file = (name) => ({ name, type: "image/png" })

// Pictures whose uploads end when the test says so.
function pictures() {
  const uploads = []
  const deleted = []
  const api = {
    uploadAttachment: (sent, { onProgress, signal }) =>
      new Promise((resolve, reject) => uploads.push({ sent, onProgress, signal, resolve, reject })),
    deleteAttachment: async (id) => deleted.push(id),
  }
  return { actions: new PictureActions({ api }), uploads, deleted }
}

test("a fifth picture is left out", () => {
  const { actions, uploads } = pictures()

  assert.equal(actions.add(7, ["a", "b", "c"].map(file)), 0)
  assert.equal(actions.add(7, ["d", "e", "f"].map(file)), 2)

  assert.deepEqual(uploads.map(({ sent }) => sent.name), ["a", "b", "c", "d"])
  assert.equal(actions.of(8).isEmpty, true)
})

test("a message is ready when all its pictures are uploaded", async () => {
  const { actions, uploads } = pictures()
  const pending = actions.of(7)
  let changes = 0
  pending.on("change", () => (changes += 1))
  actions.add(7, [file("a"), file("b")])
  uploads[0].onProgress(0.5)
  assert.equal(pending.entries[0].progress, 0.5)

  uploads[0].resolve({ id: 1, alt: "" })
  await settled()
  assert.equal(pending.isReady, false)
  uploads[1].resolve({ id: 2, alt: "" })
  await settled()

  assert.equal(pending.isReady, true)
  actions.describe(7, pending.entries[1].key, " A tree ")
  assert.deepEqual(pending.take(), [
    { id: 1, alt: "" },
    { id: 2, alt: "A tree" },
  ])
  assert.equal(pending.isEmpty, true)
  assert.ok(changes >= 6)
})

test("a failed upload is kept until it is repeated or removed", async () => {
  const { actions, uploads, deleted } = pictures()
  const pending = actions.of(7)
  actions.add(7, [file("a")])
  uploads[0].reject({ code: "network" })
  await settled()
  assert.deepEqual([pending.entries[0].state, pending.isReady], ["failed", false])

  actions.retry(7, pending.entries[0].key)
  uploads[1].resolve({ id: 3 })
  await settled()
  assert.equal(pending.isReady, true)
  actions.remove(7, pending.entries[0].key)

  assert.deepEqual(deleted, [3])
})

test("a removed picture is not uploaded further, and deleted if it was", async () => {
  const { actions, uploads, deleted } = pictures()
  actions.add(7, [file("a")])

  actions.remove(7, actions.of(7).entries[0].key)
  assert.equal(uploads[0].signal.aborted, true)
  uploads[0].resolve({ id: 4 })
  await settled()

  assert.deepEqual(deleted, [4])
})

test("pictures are described before their message is sent", async () => {
  const store = new Store({ socket: new Emitter(), storage: new MemoryStorage() })
  store.setUser({ id: 1, display_name: "Ann" })
  store.openConversation = { conversationId: 7, replyTo: null, expect() {} }
  const calls = []
  const api = {
    describeAttachment: async (id, alt) => calls.push(["describe", id, alt]),
    postMessage: (_, body) => {
      calls.push(["post", body.attachment_ids, body.content])
      return new Promise(() => {})
    },
  }
  const outbox = { add: (clientId, content, _, more) => ({ clientId, content, ...more }), has: () => true }
  Object.defineProperty(store, "outbox", { get: () => outbox })
  const actions = new ConversationActions({ api, store, socket: new Emitter() })

  actions.send(7, "", { attachments: [{ id: 1, alt: "A tree" }, { id: 2, alt: "" }] })
  await settled()

  assert.deepEqual(calls, [
    ["describe", 1, "A tree"],
    ["post", [1, 2], ""],
  ])
})

test("a picture is shown in at most 320 pixels and not enlarged", () => {
  assert.deepEqual(shownSize({ width: 2048, height: 512 }), { width: 320, height: 80 })
  assert.deepEqual(shownSize({ width: 30, height: 40 }), { width: 30, height: 40 })
  assert.deepEqual(shownSize({ width: 2, height: 2048 }), { width: 1, height: 320 })
})

test("a picture stands for a text where it is not shown", () => {
  const plain = { alt: "", file_name: "cat.png", width: 64, height: 48 }

  assert.equal(pictureText({ ...plain, alt: "a\ncat" }), "[Picture: a cat]")
  assert.equal(pictureText(plain), "[Picture: cat.png, 64×48]")
  assert.equal(pictureText({ ...plain, file_name: null }), "[Picture: 64×48]")
  assert.equal(textOf({ content: " ", attachments: [plain, plain] }).split("\n").length, 2)
  assert.equal(textOf({ content: "Hi", attachments: [plain] }), "Hi")
})

test("a card in a picture is found wherever it is", async () => {
  const chunk = (kind, data) => {
    const length = new DataView(new ArrayBuffer(4))
    length.setUint32(0, data.length)
    return [...new Uint8Array(length.buffer), ...Buffer.from(kind), ...Buffer.from(data), 0, 0, 0, 0]
  }
  const png = (...chunks) => new Blob([Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, ...chunks.flat()])])
  const image = chunk("IDAT", "x".repeat(100_000))

  assert.equal(await isCardPicture(png(image, chunk("tEXt", "chara\0e30="), chunk("IEND", ""))), true)
  assert.equal(await isCardPicture(png(image, chunk("tEXt", "Comment\0chara"), chunk("IEND", ""))), false)
  const jpeg = [0xff, 0xd8, ...new Array(1000).fill(1)]
  assert.equal(await isCardPicture(new Blob([Uint8Array.from(jpeg)])), false)
  const archive = [...jpeg, 0x50, 0x4b, 5, 6, ...new Array(18).fill(0)]
  assert.equal(await isCardPicture(new Blob([Uint8Array.from(archive)])), true)
})

test("a space sees if the model of any character does", () => {
  const providers = [
    { id: 1, is_default: true, vision: false },
    { id: 2, is_default: false, vision: true },
  ]

  assert.equal(doesAnySee([{ llm_provider_id: null }], providers), false)
  assert.equal(doesAnySee([{ llm_provider_id: null }, { llm_provider_id: 2 }], providers), true)
  assert.equal(doesAnySee([{ llm_provider_id: 9 }], []), false)
})
