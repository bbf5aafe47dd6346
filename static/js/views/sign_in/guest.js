// Guests: their account exists in this browser only, until they add a username and a password.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"
import { button, submitButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { usernameInput } from "./sign_in_page.js"
import { field, form, input } from "../components/form.js"

const HINT_MS = 10_000

// Suggests to keep the account, after the guest has joined.
export function suggestKeepingAccount({ toasts, router, store }) {
  const action = { label: t("guest.keep"), run: () => router.go(paths.settings("profile")) }
  const text = t("guest.welcome", { name: store.user.display_name })
  store.on("session", toasts.show(text, { action, staysMs: HINT_MS }))
}

// The form that turns a guest into a registered user; then calls `onKept()`.
export function keepForm({ session, toasts }, onKept) {
  const username = field({
    label: t("setup.username"),
    hint: t("setup.username_hint"),
    control: usernameInput({ maxlength: "32" }),
  })
  const password = field({
    label: t("password"),
    hint: t("password.hint"),
    control: input({ name: "password", type: "password", autocomplete: "new-password", maxlength: "256" }),
  })
  const submit = async () => {
    await session.keepAccount({ username: username.control.value.trim(), password: password.control.value })
    toasts.show(t("guest.kept"))
    onKept()
  }
  const actions = el("div", { class: "form__actions form__actions--start" }, submitButton(t("guest.keep")))
  return form({ fields: { username, password }, submit, children: [username.node, password.node, actions] })
}

// Signs out. Guests are warned that they lose their account, and can keep it instead.
export async function confirmSignOut({ session, toasts, router, store }) {
  const signOut = () => session.signOut().catch((error) => toasts.error(error))
  if (!store.user.is_guest) return signOut()
  const choice = await openDialog({
    title: t("guest.leave_title"),
    content: (close) => [
      el("p", { class: "dialog__lead" }, t("guest.leave_text")),
      el(
        "div",
        { class: "form__actions" },
        button(t("guest.leave"), { look: "danger", click: () => close("leave") }),
        button(t("guest.keep"), { look: "primary", autofocus: true, click: () => close("keep") }),
      ),
    ],
  })
  if (choice === "leave") await signOut()
  if (choice === "keep") router.go(paths.settings("profile"))
}
