// Which language the page speaks: the account's; else the one chosen on this device; else the one
// the browser asks for.
import { ApiError } from "./api.js"
import { LANGUAGES, locale, match, speak, t } from "./base/i18n.js"

const CHOSEN = "troupe.language"

export default class Language {
  #local
  #session
  #wasChosenHere = false

  constructor({ local, session }) {
    this.#local = local
    this.#session = session
  }

  // Before anybody is known.
  start() {
    return this.#speak(this.#wish())
  }

  // Somebody came in with an account. Whoever chose a language at the door has chosen it for the
  // account as well.
  async follow(user) {
    if (this.#wasChosenHere) await this.teach(user)
    else await this.#speak(match([user.locale]) ?? this.#wish())
  }

  // A new account gets the language in which it was made.
  async teach(user) {
    this.#wasChosenHere = false
    if (match([user.locale]) === locale) return
    // It is spoken here all the same: another device would ask for its own wish.
    await this.#session.changeLocale(locale).catch(() => {})
  }

  // At the door, where nothing is but what `redraw` draws anew.
  async chooseSignedOut(tag, redraw) {
    await speak(tag).catch(({ message }) => {
      throw new ApiError({ code: "network", message })
    })
    this.#wasChosenHere = true
    this.#remember(tag)
    mark()
    redraw()
  }

  // Inside, the page begins anew: every word in it is another, and drafts, what waits to be sent
  // and the address are kept over a reload anyway.
  async choose(tag) {
    await this.#session.changeLocale(tag)
    this.#remember(tag)
    location.reload()
  }

  // Private

  #wish() {
    return match([this.#local.getItem(CHOSEN), ...navigator.languages]) ?? "en"
  }

  #remember(tag) {
    try {
      this.#local.setItem(CHOSEN, tag)
    } catch {
      // A full storage forgets the choice with the page; the account still has it.
    }
  }

  // Without its table the page goes on in the language it has.
  async #speak(tag) {
    await speak(tag).catch(() => {})
    mark()
  }
}

// What the browser, a screen reader and the fonts go by.
function mark() {
  const { dir } = LANGUAGES.find(({ tag }) => tag === locale)
  Object.assign(document.documentElement, { lang: locale, dir })
  document.querySelector("meta[name=description]").content = t("app.description")
}
