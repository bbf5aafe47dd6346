// The session has ended while the page was open: sign in again, and go on where one was.
import { t } from "../base/i18n.js"
import { el } from "../base/dom.js"
import { openDialog } from "./dialog.js"
import { signInForm } from "./entrance.js"

// Resolves with the user who signed in.
export function askToSignIn({ session, store }) {
  return openDialog({
    title: t("session_ended.title"),
    dismissable: false,
    content: (close) => [
      el("p", { class: "dialog__lead" }, t("session_ended.lead")),
      signInForm(session, close, { username: store.user.username }),
    ],
  })
}
