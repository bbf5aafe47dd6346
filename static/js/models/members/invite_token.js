// The token of the invite link that the user has opened. It is in the fragment of the address, which is
// not sent to the server, and is kept for this tab until the user has joined.
const KEPT = "troupe.invitation"

export default class InviteToken {
  #storage

  constructor(storage) {
    this.#storage = storage
  }

  // Stores the token of an address. Without one the previous token is kept.
  readFrom({ hash }) {
    const token = hash.slice(1)
    if (/^[\w-]{1,200}$/.test(token)) this.#storage.setItem(KEPT, token)
  }

  get token() {
    return this.#storage.getItem(KEPT)
  }

  clear() {
    this.#storage.removeItem(KEPT)
  }
}
