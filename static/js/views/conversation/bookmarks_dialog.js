// The dialog "Bookmarks": the messages of a conversation that the user has marked. A click goes to the
// message.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { shortTime } from "../../base/time.js"
import { quoteOf } from "../../models/conversation/quote.js"
import { paths } from "../../router.js"
import { iconButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"

export async function openBookmarksDialog(parts, conversation) {
  const message = await openDialog({
    title: t("bookmark.title"),
    wide: true,
    content: (close) => content(parts, conversation.id, close),
  })
  if (message) parts.router.go(paths.message(message.conversation_id, message.id))
}

function content(parts, conversationId, close) {
  const list = el("ul", { class: "bookmarks", "aria-label": t("bookmark.title") })
  const status = el("p", { class: "bookmarks__status", role: "status" }, t("loading"))
  const show = (messages) => {
    replace(list, messages.map((it) => row(it)))
    status.hidden = messages.length > 0
    status.textContent = messages.length > 0 ? "" : t("bookmark.none")
  }
  const row = (message) => {
    const node = el(
      "li",
      { class: "bookmarks__row" },
      el(
        "button",
        { class: "bookmarks__message", type: "button", on: { click: () => close(message) } },
        el(
          "span",
          { class: "bookmarks__head" },
          bdi(message.author_name, "bookmarks__author"),
          el("time", { datetime: message.created_at }, shortTime(Date.parse(message.created_at))),
        ),
        el("span", { class: "bookmarks__text", dir: "auto" }, quoteOf(message).excerpt),
      ),
      iconButton("trash", t("bookmark.remove"), { look: "small", click: () => remove(message, node) }),
    )
    return node
  }
  const remove = async (message, node) => {
    try {
      await parts.bookmarks.remove(message)
    } catch (error) {
      return parts.toasts.error(error)
    }
    const next = node.nextElementSibling ?? node.previousElementSibling
    node.remove()
    if (next) next.querySelector("button")?.focus()
    else show([])
  }
  parts.bookmarks.list(conversationId).then(show, (error) => {
    status.textContent = ""
    parts.toasts.error(error)
  })
  return [status, list]
}
