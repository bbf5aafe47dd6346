// Translations: what is requested and when, what a message shows, and how failures end.
import assert from "node:assert/strict"
import test, { mock } from "node:test"
import TranslationActions from "../../static/js/actions/translations.js"
import Emitter from "../../static/js/base/emitter.js"
import { languageOptions } from "../../static/js/models/message/reading_languages.js"
import { readingLanguage } from "../../static/js/models/message/translations.js"

mock.timers.enable({ apis: ["setTimeout"] })

const MINE = 9
const PROVIDER = 3

function message(id, { version = 1, by = 1, content = `Text ${id}.` } = {}) {
  return { id, version, content, space_membership_id: by }
}

class FakeStore extends Emitter {
  user = { id: 1, locale: "en", settings: { language: "de" } }
  openSpace = { translation_provider_id: PROVIDER }
  myMembership = { id: MINE, translate: "on_demand" }
}

// An API whose answers the test gives one by one.
class FakeApi {
  requests = []
  translation(id, language) {
    return new Promise((resolve, reject) => this.requests.push({ id, language, resolve, reject }))
  }
}

function open(translate = "on_demand") {
  const [api, store, socket] = [new FakeApi(), new FakeStore(), new Emitter()]
  store.myMembership.translate = translate
  return { api, store, socket, actions: new TranslationActions({ api, store, socket }) }
}

function translated(id, version = 1) {
  return { message_id: id, version, language: "de", text: `Satz ${id}.`, html: `<p>Satz ${id}.</p>` }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

test("a message is translated on demand, and its original is one step away", async () => {
  const { api, actions } = open()
  const it = message(1)
  actions.want([it])
  assert.equal(api.requests.length, 0)

  actions.toggle(it)
  assert.equal(actions.of(it).entry.state, "loading")
  api.requests[0].resolve(translated(1))
  await settle()

  assert.deepEqual([api.requests[0].id, api.requests[0].language], [1, "de"])
  assert.equal(actions.of(it).isShown, true)
  assert.equal(actions.of(it).entry.html, "<p>Satz 1.</p>")
  actions.toggle(it)
  assert.equal(actions.of(it).isShown, false)
  actions.toggle(it)
  assert.equal(actions.of(it).isShown, true)
  assert.equal(api.requests.length, 1)
})

test("an answer without a text is completed by the event", async () => {
  const { api, socket, actions } = open()
  const it = message(1)
  actions.toggle(it)
  api.requests[0].resolve({ message_id: 1, version: 1, language: "de" })
  await settle()
  assert.equal(actions.of(it).entry.state, "loading")

  socket.emit("event", { type: "message_translated", ...translated(1) })

  assert.equal(actions.of(it).isShown, true)
  assert.equal(actions.of(message(1, { version: 2 })).entry, null)
})

test("all shown messages of others are requested, a few at once, the newest first", async () => {
  const { api, actions } = open("always")
  const all = [1, 2, 3, 4, 5].map((id) => message(id)).concat(message(6, { by: MINE }))

  actions.want(all)
  actions.want(all)

  assert.deepEqual(api.requests.map(({ id }) => id), [5, 4, 3])
  api.requests[0].resolve(translated(5))
  await settle()
  assert.deepEqual(api.requests.map(({ id }) => id), [5, 4, 3, 2])
  assert.equal(actions.of(message(5)).isShown, true)
})

test("a failure shows the original with its reason, and can be tried again", async () => {
  const { api, socket, actions } = open("always")
  const it = message(1)
  actions.want([it])
  api.requests[0].reject({ code: "upstream_error" })
  await settle()
  assert.deepEqual(actions.of(it), { entry: { state: "failed", error: { code: "upstream_error" } }, isShown: false })
  actions.want([it])
  assert.equal(api.requests.length, 1, "it is not repeated by itself")

  actions.toggle(it)
  socket.emit("event", { type: "translation_failed", message_id: 1, version: 1, language: "de", code: "unavailable" })
  assert.equal(actions.of(it).entry.error.code, "unavailable")
  assert.equal(api.requests.length, 2)
})

test("a lost connection repeats the requests whose event may be lost", async () => {
  const { api, store, actions } = open()
  actions.toggle(message(1))
  api.requests[0].resolve({ message_id: 1, version: 1, language: "de" })
  await settle()

  store.emit("gap")

  assert.equal(api.requests.length, 2)
  api.requests[1].resolve({ message_id: 1, version: 1, language: "de" })
  await settle()
  mock.timers.tick(30_000)
  assert.equal(api.requests.length, 4, "both answers announced an event that has not arrived")
})

test("a text that is in the reader's language is not marked as a translation", async () => {
  const { api, actions } = open("always")
  const it = message(1, { content: "Satz 1." })
  actions.want([it])
  api.requests[0].resolve(translated(1))
  await settle()

  assert.deepEqual(actions.of(it), { entry: null, isShown: false })
})

test("without a provider, or switched off, nothing is offered", () => {
  const { store, actions } = open("always")
  store.openSpace = { translation_provider_id: null }
  assert.equal(actions.isOffered, false)
  store.openSpace = { translation_provider_id: PROVIDER }
  store.myMembership.translate = "off"
  assert.equal(actions.isOffered, false)
})

test("the reading language is that of the settings, else that of the page", () => {
  assert.equal(readingLanguage({ locale: "zh-CN", settings: { language: "ja" } }), "ja")
  assert.equal(readingLanguage({ locale: "zh-CN", settings: {} }), "zh-CN")
  const options = languageOptions("gsw")
  assert.ok(options.some(([tag]) => tag === "gsw"))
  assert.deepEqual(options.find(([tag]) => tag === "de"), ["de", "German"])
})
