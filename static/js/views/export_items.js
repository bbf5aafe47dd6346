// What menus offer about files: a conversation and a space go out, a chat comes in.
import { el } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { may } from "../models/rights.js"
import { askForChat } from "./import_dialog.js"

export function exportItems(conversation, role) {
  if (!may(role, "files")) return []
  const item = (format) => ({
    label: t(`chats.export_${format}`),
    icon: "down",
    run: () => fetchFile(`/api/conversations/${conversation.id}/export?format=${format}`),
  })
  return [item("jsonl"), item("txt")]
}

export function spaceFileItems(parts, space) {
  const items = []
  if (may(space.my_role, "files"))
    items.push({ label: t("chats.import"), icon: "up", run: () => askForChat(parts, space.id) })
  if (may(space.my_role, "settings"))
    items.push({
      label: t("chats.export_space"),
      icon: "down",
      run: () => fetchFile(`/api/spaces/${space.id}/export`),
    })
  return items
}

// The browser asks where to put it, and shows how far it is.
function fetchFile(href) {
  const link = el("a", { href, download: "" })
  document.body.append(link)
  link.click()
  link.remove()
}
