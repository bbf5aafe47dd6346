// Opens the message from which a memory was learned.
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"

export async function openSource({ memories, router, shell, toasts }, memory) {
  try {
    const id = await memories.sourceOf(memory)
    if (id === null) return toasts.show(t("search.gone"))
    shell.closeDrawer()
    return router.go(paths.message(memory.conversation_id, id))
  } catch (error) {
    return toasts.error(error)
  }
}
