// Menu items for export and import of conversations and spaces.
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { saveFile } from "../components/file_choice.js"
import { openChatImportDialog } from "../on_demand.js"

// Longer than any export takes.
const PACKING_MS = 20 * 60_000
// The browser has opened the file by then.
const KEPT_MS = 60_000

export function exportItems(conversation, role) {
  if (!may(role, "files")) return []
  const item = (format) => ({
    label: t(`chats.export_${format}`),
    icon: "down",
    run: () => saveFile(`/api/conversations/${conversation.id}/export?format=${format}`),
  })
  return [item("jsonl"), item("txt")]
}

export function spaceFileItems(parts, space) {
  const items = []
  if (may(space.my_role, "files"))
    items.push({ label: t("chats.import"), icon: "up", run: () => openChatImportDialog(parts, space.id) })
  if (may(space.my_role, "settings"))
    items.push({
      label: t("chats.export_space"),
      icon: "down",
      run: () => fetchSpace(parts, space),
    })
  return items
}

// Downloads a space. Progress and errors are shown, because the export may take long or be too large.
async function fetchSpace({ files, toasts }, space) {
  const close = toasts.show(t("chats.packing"), { staysMs: PACKING_MS })
  try {
    const { name, blob } = await files.exportSpace(space.id)
    const href = URL.createObjectURL(blob)
    saveFile(href, name)
    setTimeout(() => URL.revokeObjectURL(href), KEPT_MS)
  } catch (error) {
    toasts.error(error)
  } finally {
    close()
  }
}
