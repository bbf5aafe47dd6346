// The notice that it is the user's turn. The queue bar shows it where the conversation is open and visible.
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"

export function showTurnNotice({ store, router, toasts }, { conversation_id: id }) {
  const isOpen = store.openConversation?.conversationId === id
  if (isOpen && !document.hidden) return
  const conversation = store.conversation(id)
  const title = conversation?.title || store.space(conversation?.space_id)?.name || t("app.name")
  const open = { label: t("queue.open"), run: () => router.go(paths.conversation(id)) }
  toasts.show(t("queue.turn_notice", { title }), { action: isOpen ? null : open, staysMs: null })
}
