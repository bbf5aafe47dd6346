// The pictures that the next message of a conversation will have: at most four, each uploaded before the
// message is sent. A failed upload is kept until it is repeated or removed.
import Emitter from "../../base/emitter.js"

export const MAX_PICTURES = 4

// Emits "change".
export default class PendingPictures extends Emitter {
  #entries = []
  #lastKey = 0

  get entries() {
    return this.#entries
  }

  get isEmpty() {
    return this.#entries.length === 0
  }

  // Whether the message can be sent with all of them.
  get isReady() {
    return this.#entries.every((entry) => entry.state === "ready")
  }

  // Adds a file whose upload begins; null if there are four already. `abort` cancels the upload.
  add(file, abort) {
    if (this.#entries.length >= MAX_PICTURES) return null
    const entry = { key: ++this.#lastKey, file, abort, state: "uploading", progress: 0, error: null, attachment: null, alt: "" }
    this.#entries = [...this.#entries, entry]
    this.emit("change")
    return entry
  }

  // Changes an entry. Returns the changed one; null if it was removed.
  change(key, fields) {
    let changed = null
    this.#entries = this.#entries.map((entry) => {
      if (entry.key !== key) return entry
      changed = { ...entry, ...fields }
      return changed
    })
    if (changed) this.emit("change")
    return changed
  }

  find(key) {
    return this.#entries.find((entry) => entry.key === key) ?? null
  }

  // Returns the removed entry.
  remove(key) {
    const removed = this.find(key)
    this.#entries = this.#entries.filter((entry) => entry.key !== key)
    if (removed) this.emit("change")
    return removed
  }

  // Removes all entries, and returns their attachments with the descriptions that were typed.
  take() {
    const taken = this.#entries.map(({ attachment, alt }) => ({ ...attachment, alt: alt.trim() }))
    this.#entries = []
    this.emit("change")
    return taken
  }
}
