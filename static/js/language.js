// The language of the page: that of the account, else the one chosen on this device, else the preferred
// language of the browser.
import { ApiError } from "./api.js"
import { LANGUAGES, locale, matchLocale, setLocale, t } from "./base/i18n.js"

const CHOSEN = "troupe.language"

export default class Language {
  #local
  #session
  #wasChosenHere = false
  // Resolves when the language chosen on the sign-in page is shown or cannot be loaded.
  #choice = Promise.resolve()

  constructor({ local, session }) {
    this.#local = local
    this.#session = session
  }

  // Sets the language before the user is known.
  start() {
    return this.#load(this.#preferred())
  }

  // Sets the language of a user who has signed in. A language chosen on the sign-in page is saved to
  // the account.
  async useLanguageOf(user) {
    await this.#choice
    if (this.#wasChosenHere) await this.saveTo(user)
    else await this.#load(matchLocale([user.locale]) ?? this.#preferred())
  }

  // Saves the language of the page to the account.
  async saveTo(user) {
    await this.#choice
    this.#wasChosenHere = false
    if (matchLocale([user.locale]) === locale()) return
    // A failure is ignored because the page is already shown in this language.
    await this.#session.changeLocale(locale()).catch(() => {})
  }

  // Changes the language on the sign-in page; `redraw` renders the page again.
  chooseSignedOut(tag, redraw) {
    const choice = this.#applyChoice(tag, redraw)
    this.#choice = choice.catch(() => {})
    return choice
  }

  // Changes the language of the account and reloads the page, because every text changes. Drafts,
  // unsent messages and the address survive a reload.
  async choose(tag) {
    await this.#session.changeLocale(tag)
    this.#store(tag)
    location.reload()
  }

  // Private

  async #applyChoice(tag, redraw) {
    await setLocale(tag).catch(({ message }) => {
      throw new ApiError({ code: "network", message })
    })
    this.#wasChosenHere = true
    this.#store(tag)
    mark()
    redraw()
  }

  #preferred() {
    return matchLocale([this.#local.getItem(CHOSEN), ...navigator.languages]) ?? "en"
  }

  #store(tag) {
    try {
      this.#local.setItem(CHOSEN, tag)
    } catch {
      // If storage is full, the choice is lost with the page; the account still has it.
    }
  }

  // If the table cannot be loaded, the page keeps its language.
  async #load(tag) {
    await setLocale(tag).catch((error) => console.error("failed to load a language", error))
    mark()
  }
}

// Sets the attributes that the browser, screen readers and fonts use.
function mark() {
  const { dir } = LANGUAGES.find(({ tag }) => tag === locale())
  Object.assign(document.documentElement, { lang: locale(), dir })
  document.querySelector("meta[name=description]").content = t("app.description")
}
