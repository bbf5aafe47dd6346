// The name of a conversation: its title, else its kind.
import { t } from "../../base/i18n.js"

export function conversationName(conversation, space) {
  if (conversation.title) return conversation.title
  if (conversation.id === space?.root_conversation_id) return t("conversation.main")
  if (conversation.kind === "branch") return t("conversation.branch")
  return conversation.kind === "thread" ? t("conversation.thread") : t("conversation.untitled")
}
