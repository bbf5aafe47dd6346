// @ts-check
// Translations of messages: requested one by one, or for all messages that are shown. The server answers at
// once, or later with an event.
import Translations, { readingLanguage, shownTranslation } from "../models/message/translations.js"

// Requests at the same time. A page of messages asks for as many translations as it shows.
const MAX_REQUESTS = 3
// An event may be lost with a connection: the request is repeated.
const REPEAT_MS = 30_000
const MAX_REPEATS = 5

export default class TranslationActions {
  #api
  #store
  #known = new Translations()
  // Messages whose translations are requested next, the most important one first.
  #queue = []
  #nRequests = 0
  #pausedUntil = 0

  constructor({ api, store, socket }) {
    this.#api = api
    this.#store = store
    socket.on("event", (event) => this.#applyEvent(event))
    store.on("gap", () => this.#repeatAll())
  }

  // Whether messages of the open space can be translated for the user.
  get isOffered() {
    const { openSpace, myMembership } = this.#store
    return Boolean(openSpace?.translation_provider_id) && myMembership?.translate !== "off"
  }

  // Returns `{ entry, isShown }` of a message; see `shownTranslation`.
  of(message) {
    if (!this.isOffered || !this.#language) return { entry: null, isShown: false }
    const entry = this.#known.find(message, this.#language)
    return shownTranslation(message, entry, this.#known.isWanted(message, this.#isAlways(message)))
  }

  // Shows the translation of a message, or its original.
  toggle(message) {
    const { isShown } = this.of(message)
    this.#known.choose(message, !isShown)
    const entry = this.#known.find(message, this.#language)
    if (!isShown && (!entry || entry.state === "failed")) {
      this.#known.drop(message, this.#language)
      this.#enqueue([message])
    }
    this.#store.emit("translations")
  }

  // Requests the translations of those of these messages that the user wants to read in translation, the last
  // one first: all, or those whose text has changed since.
  want(messages) {
    if (!this.isOffered || !this.#language) return
    const isWanted = (it) => this.#known.isWanted(it, this.#isAlways(it))
    const wanted = messages.filter((it) => isWanted(it) && !this.#known.find(it, this.#language))
    this.#enqueue(wanted.toReversed())
  }

  // Private

  get #language() {
    return readingLanguage(this.#store.user)
  }

  // The user's own messages need no translation.
  #isAlways(message) {
    const { myMembership } = this.#store
    return myMembership?.translate === "always" && message.space_membership_id !== myMembership.id
  }

  #enqueue(messages) {
    const language = this.#language
    for (const message of messages) this.#known.setLoading(message, language)
    this.#queue.unshift(...messages.map(({ id, version }) => ({ id, version, language, nRepeats: 0 })))
    this.#requestNext()
  }

  #requestNext() {
    const wait = this.#pausedUntil - Date.now()
    if (wait > 0) return
    while (this.#nRequests < MAX_REQUESTS && this.#queue.length > 0) {
      this.#nRequests += 1
      this.#request(this.#queue.shift()).finally(() => {
        this.#nRequests -= 1
        this.#requestNext()
      })
    }
  }

  async #request(job) {
    const about = { message_id: job.id, version: job.version, language: job.language }
    try {
      const answer = await this.#api.translation(job.id, job.language)
      // The message was changed: its event shows the new text, which is requested by itself.
      if (answer.version !== job.version) this.#known.drop(job, job.language)
      if ("text" in answer) this.#known.setReady(answer)
      else if (job.nRepeats < MAX_REPEATS) setTimeout(() => this.#repeat(job), REPEAT_MS)
      else this.#known.setFailed(about, { code: "unavailable" })
    } catch (error) {
      if (error.code === "rate_limited" && error.retryAfter) return this.#pause(job, error.retryAfter)
      if (error.code === "message_changed") this.#known.drop(job, job.language)
      else this.#known.setFailed(about, error)
    }
    this.#store.emit("translations")
  }

  #pause(job, seconds) {
    this.#queue.unshift(job)
    this.#pausedUntil = Date.now() + seconds * 1000
    setTimeout(() => this.#requestNext(), seconds * 1000 + 50)
  }

  // Asks again for a translation whose event has not arrived.
  #repeat(job) {
    if (this.#known.find(job, job.language)?.state !== "loading") return
    this.#queue.push({ ...job, nRepeats: job.nRepeats + 1 })
    this.#requestNext()
  }

  #repeatAll() {
    const queued = new Set(this.#queue.map(({ id, language }) => `${id} ${language}`))
    const lost = this.#known.loading.filter(({ id, language }) => !queued.has(`${id} ${language}`))
    this.#queue.push(...lost.map((it) => ({ ...it, nRepeats: 0 })))
    this.#requestNext()
  }

  #applyEvent(event) {
    if (event.type === "message_translated") this.#known.setReady(event)
    else if (event.type === "translation_failed") this.#known.setFailed(event, { code: event.code })
    else return
    this.#store.emit("translations")
  }
}
