// The pictures of messages that are not sent yet: uploads, with progress and cancellation.
import PendingPictures, { MAX_PICTURES } from "../models/conversation/pending_pictures.js"

export default class PictureActions {
  // Set by the composer: adds files to its next message.
  onFiles = null
  #api
  #pending = new Map()

  constructor({ api }) {
    this.#api = api
  }

  // Returns the pictures of the next message of a conversation. They are kept while the page is open.
  of(conversationId) {
    if (!this.#pending.has(conversationId)) this.#pending.set(conversationId, new PendingPictures())
    return this.#pending.get(conversationId)
  }

  // Uploads files. Returns how many were left out, because a message has at most four pictures.
  add(conversationId, files) {
    const pending = this.of(conversationId)
    const room = MAX_PICTURES - pending.entries.length
    for (const file of files.slice(0, room)) {
      const abort = new AbortController()
      const entry = pending.add(file, abort)
      this.#upload(pending, entry)
    }
    return Math.max(0, files.length - room)
  }

  retry(conversationId, key) {
    const pending = this.of(conversationId)
    const abort = new AbortController()
    const entry = pending.change(key, { abort, state: "uploading", progress: 0, error: null })
    if (entry) this.#upload(pending, entry)
  }

  // Cancels the upload, or deletes the picture. If that fails, the server deletes it after a day.
  remove(conversationId, key) {
    const removed = this.of(conversationId).remove(key)
    removed?.abort.abort()
    if (removed?.attachment) this.#api.deleteAttachment(removed.attachment.id).catch(() => {})
  }

  describe(conversationId, key, alt) {
    this.of(conversationId).change(key, { alt })
  }

  // Private

  async #upload(pending, { key, file, abort }) {
    const onProgress = (progress) => pending.change(key, { progress })
    try {
      const attachment = await this.#api.uploadAttachment(file, { onProgress, signal: abort.signal })
      if (!pending.change(key, { state: "ready", progress: 1, attachment }))
        this.#api.deleteAttachment(attachment.id).catch(() => {})
    } catch (error) {
      pending.change(key, { state: "failed", error })
    }
  }
}
