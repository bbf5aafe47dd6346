// The invitation with which somebody came: the token of an invite link. It stands behind the `#`, so
// that no server writes it down, and is kept for this tab until one has joined or gone elsewhere.
const KEPT = "troupe.invitation"

export default class InviteToken {
  #storage

  constructor(storage) {
    this.#storage = storage
  }

  // Takes the token out of an address. One that came before stays when the address has none.
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
