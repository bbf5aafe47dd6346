// The pages for setup and sign-in.
import { el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { submitButton } from "../components/button.js"
import { field, form, input } from "../components/form.js"
import { languageSwitch } from "../components/language_switch.js"

// Creates the first account. Resolves when it exists.
export function showSetUp(root, parts) {
  return new Promise((resolve) => {
    showSignInPage(root, parts, () => ({
      title: t("setup.title"),
      lead: t("setup.lead"),
      body: setUpForm(parts.session, resolve),
    }))
    root.querySelector("input").focus()
  })
}

function setUpForm(session, onDone) {
  const fields = accountFields()
  const { display_name: name, username, password } = fields
  const submit = async () => {
    const account = { displayName: name.control.value.trim(), username: username.control.value.trim() }
    await session.setUp({ ...account, password: password.control.value })
    onDone()
  }
  const children = [name.node, username.node, password.node, wideSubmit(t("setup.submit"))]
  return form({ fields, submit, children })
}

// The fields of a new account, by the names of the API.
export function accountFields() {
  const name = input({ name: "display_name", autocomplete: "name", maxlength: "100", required: true })
  const username = usernameInput({ maxlength: "32" })
  suggestUsername(name, username)
  const password = input({
    name: "password",
    type: "password",
    autocomplete: "new-password",
    maxlength: "256",
  })
  return {
    display_name: field({ label: t("setup.name"), control: name }),
    username: field({ label: t("setup.username"), hint: t("setup.username_hint"), control: username }),
    password: field({ label: t("password"), hint: t("password.hint"), control: password }),
  }
}

export function usernameInput(props = {}) {
  return input({
    name: "username",
    autocomplete: "username",
    autocapitalize: "none",
    spellcheck: "false",
    ...props,
  })
}

// Resolves with the user.
export function showSignIn(root, parts) {
  return new Promise((resolve) => {
    showSignInPage(root, parts, () => ({
      title: t("sign_in.title"),
      lead: t("sign_in.lead"),
      body: signInForm(parts.session, resolve),
    }))
    root.querySelector("input").focus()
  })
}

// After a wrong password the username is kept.
export function signInForm(session, onSignedIn, { username: known = "" } = {}) {
  const username = field({ label: t("setup.username"), control: usernameInput({ value: known }) })
  const password = field({
    label: t("password"),
    control: input({
      name: "password",
      type: "password",
      autocomplete: "current-password",
      autofocus: known !== "",
    }),
  })
  const retype = () => {
    password.control.value = ""
    password.control.focus()
  }
  return form({
    fields: { username, password },
    submit: async () =>
      onSignedIn(
        await session.signIn({ username: username.control.value.trim(), password: password.control.value }),
      ),
    onError: retype,
    children: [username.node, password.node, wideSubmit(t("sign_in.submit"))],
  })
}

// A page that shows an error and a link.
export function showNotFound(root, { title, text, link }) {
  replace(
    root,
    el(
      "main",
      { class: "sign-in" },
      el(
        "div",
        { class: "sign-in__box" },
        head(title, text),
        el("a", { class: "button button--primary", href: link.href }, link.label),
      ),
    ),
  )
}

// `page()` returns `{ title, lead, body }` and is called again when the language changes.
export function showSignInPage(root, { language, toasts, store }, page) {
  const choose = (tag) =>
    store.user ? language.choose(tag) : language.chooseSignedOut(tag, () => redraw(root, draw))
  const draw = () => {
    const { title, lead, body } = page()
    const card = el("div", { class: "sign-in__card" }, body)
    const box = el("div", { class: "sign-in__box" }, head(title, lead), card)
    replace(root, el("main", { class: "sign-in" }, box, languageSwitch({ choose, toasts })))
    document.title = t("app.name")
  }
  draw()
}

// Keeps the entered values and the focus.
function redraw(root, draw) {
  const typed = [...root.querySelectorAll("input, textarea")].map(({ name, value }) => [name, value])
  draw()
  for (const [name, value] of typed) {
    const control = root.querySelector(`[name="${name}"]`)
    control.value = value
    control.dispatchEvent(new Event("input"))
  }
  root.querySelector("[data-language][aria-pressed=true]").focus()
}

function head(title, lead) {
  return el(
    "header",
    { class: "sign-in__head" },
    icon("logo", "sign-in__logo"),
    el("h1", { class: "sign-in__title" }, title),
    el("p", { class: "sign-in__lead" }, lead),
  )
}

export function wideSubmit(label) {
  return submitButton(label, { look: "primary wide" })
}

// Suggests "ann.lee" for "Ann Lee" until the user types a username.
function suggestUsername(name, username) {
  let isOwn = false
  username.addEventListener("input", () => {
    isOwn = username.value !== ""
  })
  name.addEventListener("input", () => {
    if (!isOwn) username.value = usernameFrom(name.value)
  })
}

function usernameFrom(name) {
  const plain = name
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
  return plain
    .trim()
    .replace(/\s+/g, ".")
    .replace(/[^\p{L}\p{N}_.-]/gu, "")
    .slice(0, 32)
}
