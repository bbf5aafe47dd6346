// The page of an invite link. Signed-in users join directly; others join as a guest, sign in or create
// an account.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { shortTime } from "../../base/time.js"
import { button } from "../components/button.js"
import { accountFields, showSignInPage, showNotFound, signInForm, wideSubmit } from "./sign_in_page.js"
import { explain } from "../components/error_messages.js"
import { field, form, input } from "../components/form.js"
import { otherNameField } from "../members/invitation_dialog.js"
import { personaField } from "../members/my_membership_dialog.js"

export default class JoinPage {
  #root
  #parts
  #token
  #preview
  #info = null
  #way = null
  #arrive

  // `preview()` loads what the token leads to.
  constructor(root, parts, { token, preview }) {
    this.#root = root
    this.#parts = parts
    this.#token = token
    this.#preview = preview
  }

  // Resolves when the user has joined, with `{ user, membership, persona, isNewUser }`.
  open() {
    return new Promise((resolve) => {
      this.#arrive = resolve
      this.#find()
    })
  }

  // Private

  async #find() {
    if (!this.#token) return this.#showClosed({ status: 404 })
    try {
      this.#info = await this.#preview()
    } catch (error) {
      return this.#showClosed(error)
    }
    this.#way ??= this.#ways()[0]
    showSignInPage(this.#root, this.#parts, () => this.#page())
    this.#focus()
  }

  // Explains why a link does not work. The token is kept if a later attempt may succeed.
  #showClosed(error) {
    const { store, inviteToken, title } = this.#parts
    const why = { 404: "unknown", 410: "expired", 403: "archived" }[error.status] ?? "later"
    const isDead = why === "unknown" || why === "expired"
    const words = { title: t(`join.${why}_title`), text: isDead ? t("join.ask_again") : explain(error) }
    const home = { href: "/", label: store.user ? t("unknown.home") : t("sign_in.submit") }
    if (why !== "later") inviteToken.clear()
    showNotFound(this.#root, { ...words, link: why === "later" ? { href: "/join", label: t("retry") } : home })
    this.#root.firstElementChild.dataset.closed = why
    title.set(words.title)
  }

  #page() {
    const { space, host, members, role, expires_at: until, already_member: isIn } = this.#info
    const lead = host ? t("join.host", { host, n: members }) : t("join.members", { n: members })
    const ends = until && !isIn ? t("join.until", { at: shortTime(Date.parse(until)) }) : null
    return {
      title: isIn ? t("join.title_again", { space: space.name }) : t("join.title", { space: space.name }),
      lead: isIn ? lead : [lead, el("br"), t(`join.role_${role}`)],
      body: el("div", { class: "join" }, this.#choices(), this.#form(), ends && el("p", { class: "join__until" }, ends)),
    }
  }

  // Ways to join

  #ways() {
    if (this.#parts.store.user) return ["known"]
    return this.#info.role === "guest" ? ["guest", "sign_in", "register"] : ["register", "sign_in"]
  }

  #choices() {
    const ways = this.#ways()
    if (ways.length === 1) return null
    const choose = (way) => {
      this.#way = way
      showSignInPage(this.#root, this.#parts, () => this.#page())
      this.#focus()
    }
    return el(
      "div",
      { class: "choices", role: "group", "aria-label": t("join.ways") },
      ways.map((way) =>
        el(
          "button",
          {
            class: "choice",
            type: "button",
            "data-way": way,
            "aria-pressed": String(way === this.#way),
            on: { click: () => choose(way) },
          },
          t(`join.way_${way}`),
        ),
      ),
    )
  }

  #form() {
    if (this.#way === "guest") return this.#guestForm()
    if (this.#way === "register") return this.#registerForm()
    if (this.#way === "sign_in") return signInForm(this.#parts.session, (user) => this.#signedIn(user))
    return this.#knownForm()
  }

  #guestForm() {
    const name = field({
      label: t("join.name"),
      hint: t("join.name_hint"),
      control: input({ name: "display_name", autocomplete: "nickname", maxlength: "100" }),
    })
    const persona = personaField()
    const submit = async () => {
      if (name.control.value.trim() === "") return name.showError(t("field.needed"))
      const joined = await this.#parts.invites.join(this.#token, name.control.value.trim())
      this.#done(joined, { persona, isNewUser: true })
    }
    const children = [
      name.node,
      persona.node,
      el("p", { class: "field__hint" }, t("join.guest_hint")),
      wideSubmit(t("join.enter")),
    ]
    return form({ fields: { display_name: name, persona }, submit, children })
  }

  #registerForm() {
    const fields = accountFields()
    const { display_name: name, username, password } = fields
    const persona = personaField()
    const submit = async () => {
      const account = { displayName: name.control.value.trim(), username: username.control.value.trim() }
      const credentials = { ...account, password: password.control.value }
      this.#done(await this.#parts.invites.register(this.#token, credentials), { persona, isNewUser: true })
    }
    const children = [name.node, username.node, password.node, persona.node, wideSubmit(t("join.enter"))]
    return form({ fields: { ...fields, persona }, submit, children })
  }

  #knownForm() {
    const { session, toasts, store } = this.#parts
    const isIn = this.#info.already_member
    const { display_name: name } = store.user
    const persona = isIn ? null : personaField()
    const nameHere = otherNameField()
    const submit = async () => {
      const joined = await this.#parts.invites.join(this.#token, nameHere.value())
      this.#done(joined, { persona })
    }
    const signOut = () => session.signOut(location.pathname).catch((error) => toasts.error(error))
    const label = isIn ? t("join.enter") : t("join.enter_as", { name })
    const children = [nameHere.node, persona?.node, wideSubmit(label)].filter(Boolean)
    const fields = { display_name: nameHere, ...(persona && { persona }) }
    return [
      form({ fields, submit, onError: nameHere.show, children }),
      !store.user.is_guest &&
        button(t("join.not_me", { name }), { look: "quiet small", class: "join__other", click: signOut }),
    ]
  }

  // Joins after the sign-in; if that fails, shows the state of the link.
  async #signedIn(user) {
    const { store, language, invites } = this.#parts
    store.setUser(user)
    await language.useLanguageOf(user)
    try {
      this.#done(await invites.join(this.#token), {})
    } catch {
      this.#way = null
      await this.#find()
    }
  }

  #done({ user, membership }, { persona = null, isNewUser = false }) {
    this.#arrive({ user, membership, persona: persona?.control.value.trim() ?? "", isNewUser })
  }

  #focus() {
    this.#root.querySelector("form :is(input, button[type=submit])")?.focus()
  }
}
