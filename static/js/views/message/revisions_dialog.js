// The dialog with the texts of a message that edits have replaced, for moderators.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { fullTime } from "../../base/time.js"
import { button } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { explain } from "../components/error_messages.js"

export function openRevisionsDialog(parts, message) {
  const status = el("p", { class: "field__hint", role: "status" }, t("loading"))
  const list = el("ul", { class: "revisions" })
  return openDialog({
    title: t("revisions.title"),
    content: (close) => {
      load(parts, message, { status, list, close })
      return [status, list]
    },
  })
}

async function load(parts, message, { status, list, close }) {
  try {
    const found = await parts.conversation.revisions(message)
    status.textContent = found.length > 0 ? t("revisions.hint") : t("revisions.none")
    replace(
      list,
      found.map((it) => row(parts, it, () => restore(parts, message, it.content, close))),
    )
  } catch (error) {
    status.textContent = explain(error)
  }
}

function row(parts, { content, replaced_at: at, replaced_by: by }, click) {
  const name = parts.store.openRoster.nameOf(by) ?? t("message.unknown_author")
  return el(
    "li",
    { class: "revisions__item" },
    el("p", { class: "field__hint" }, t("revisions.replaced", { name, time: fullTime(Date.parse(at)) })),
    el("div", { class: "edit-conflict__text", dir: "auto" }, content),
    el("div", { class: "form__actions" }, button(t("revisions.restore"), { look: "small", click })),
  )
}

// Saves the text as a new version. The text that is shown now becomes a replaced one.
async function restore(parts, { id }, content, close) {
  const { conversation, store, toasts } = parts
  const present = store.openConversation?.timeline.byId(id)
  try {
    if (present) await conversation.editMessage(present, content, present.version)
    close()
  } catch (error) {
    toasts.error(error)
  }
}
