// @ts-check
// The translations of messages that this page knows, by message, version and language, and which messages
// the reader wants to see in which form.
//
// An entry is `{ state, text, html, language, error }`; its state is "loading", "ready" or "failed".

export default class Translations {
  #entries = new Map()
  // Ids of messages that the reader has switched: true is the translation, false the original.
  #choices = new Map()

  // Returns the entry of a message in a language, or null.
  find(message, language) {
    return this.#entries.get(keyOf(message.id, message.version, language)) ?? null
  }

  // Whether the translation of a message is wanted: the reader's choice, else `isAlways`.
  isWanted(message, isAlways) {
    return this.#choices.get(message.id) ?? isAlways
  }

  choose(message, isTranslated) {
    this.#choices.set(message.id, isTranslated)
  }

  setLoading(message, language) {
    this.#put(message.id, message.version, language, { state: "loading" })
  }

  drop(message, language) {
    this.#entries.delete(keyOf(message.id, message.version, language))
  }

  // Applies an answer or an event with a text.
  setReady({ message_id: id, version, language, text, html }) {
    this.#put(id, version, language, { state: "ready", language, text, html })
  }

  setFailed({ message_id: id, version, language }, error) {
    this.#put(id, version, language, { state: "failed", error })
  }

  // Returns the entries that wait for an event, as `{ id, version, language }`.
  get loading() {
    return [...this.#entries].filter(([, it]) => it.state === "loading").map(([key]) => readKey(key))
  }

  #put(id, version, language, entry) {
    this.#entries.set(keyOf(id, version, language), entry)
  }
}

// Returns what a message shows: `{ entry, isShown }`, where `entry` is null if the original is wanted and
// nothing is known. A translation that is the original itself is not marked.
export function shownTranslation(message, entry, isWanted) {
  const isSame = entry?.state === "ready" && entry.text.trim() === message.content.trim()
  if (isSame) return { entry: null, isShown: false }
  return { entry, isShown: isWanted && entry?.state === "ready" }
}

// Returns the language in which a user reads.
export function readingLanguage(user) {
  return user?.settings?.language ?? user?.locale ?? null
}

function keyOf(id, version, language) {
  return `${id} ${version} ${language}`
}

function readKey(key) {
  const [id, version, language] = key.split(" ")
  return { id: Number(id), version: Number(version), language }
}
