// The dialog to sign in again when the session has ended.
import { t } from "../../base/i18n.js"
import { el } from "../../base/dom.js"
import { openDialog } from "../components/dialog.js"
import { signInForm } from "./sign_in_page.js"
import { area, field } from "../components/form.js"

// Resolves with the user who signed in. A guest cannot sign in again: the draft is shown, so that it
// can be copied.
export function openSessionEndedDialog({ session, store, drafts }) {
  const isGuest = store.user.is_guest
  const draft = isGuest && store.openConversation ? drafts.read(store.openConversation.conversationId) : ""
  return openDialog({
    title: isGuest ? t("session_ended.guest_title") : t("session_ended.title"),
    dismissable: false,
    content: (close) => [
      el("p", { class: "dialog__lead" }, isGuest ? t("session_ended.guest_lead") : t("session_ended.lead")),
      draft !== "" && draftField(draft),
      signInForm(session, close, { username: isGuest ? "" : store.user.username }),
    ],
  })
}

function draftField(draft) {
  return field({ label: t("session_ended.draft"), control: area({ value: draft, readonly: true }) }).node
}
