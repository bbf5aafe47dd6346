// Which language the page speaks: the account's; else the one chosen on this device; else the one
// the browser asks for.
import { ApiError } from "./api.js"
import { LANGUAGES, locale, matchLocale, setLocale, t } from "./base/i18n.js"

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
    return this.#load(this.#preferred())
  }

  // Somebody came in with an account. Whoever chose a language at the door has chosen it for the
  // account as well.
  async useLanguageOf(user) {
    if (this.#wasChosenHere) await this.saveTo(user)
    else await this.#load(matchLocale([user.locale]) ?? this.#preferred())
  }

  // A new account gets the language in which it was made.
  async saveTo(user) {
    this.#wasChosenHere = false
    if (matchLocale([user.locale]) === locale) return
    // It is spoken here all the same: another device would ask for its own wish.
    await this.#session.changeLocale(locale).catch(() => {})
  }

  // At the door, where nothing is but what `redraw` draws anew.
  async chooseSignedOut(tag, redraw) {
    await setLocale(tag).catch(({ message }) => {
      throw new ApiError({ code: "network", message })
    })
    this.#wasChosenHere = true
    this.#store(tag)
    mark()
    redraw()
  }

  // Inside, the page begins anew: every word in it is another, and drafts, what waits to be sent
  // and the address are kept over a reload anyway.
  async choose(tag) {
    await this.#session.changeLocale(tag)
    this.#store(tag)
    location.reload()
  }

  // Private

  #preferred() {
    return matchLocale([this.#local.getItem(CHOSEN), ...navigator.languages]) ?? "en"
  }

  #store(tag) {
    try {
      this.#local.setItem(CHOSEN, tag)
    } catch {
      // A full storage forgets the choice with the page; the account still has it.
    }
  }

  // Without its table the page goes on in the language it has.
  async #load(tag) {
    await setLocale(tag).catch(() => {})
    mark()
  }
}

// What the browser, a screen reader and the fonts go by.
function mark() {
  const { dir } = LANGUAGES.find(({ tag }) => tag === locale)
  Object.assign(document.documentElement, { lang: locale, dir })
  document.querySelector("meta[name=description]").content = t("app.description")
}
