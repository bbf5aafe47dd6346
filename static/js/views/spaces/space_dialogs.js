// Dialogs that create, rename and delete spaces and conversations.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"
import { submitButton } from "../components/button.js"
import { confirm, openDialog } from "../components/dialog.js"
import { field, form, input } from "../components/form.js"
import { conversationName } from "../conversation/conversation_name.js"

export async function openNewSpaceDialog({ spaces, router }) {
  const id = await openTextDialog({
    title: t("space.new"),
    label: t("space.name"),
    hint: t("space.name_hint"),
    param: "name",
    action: t("space.create"),
    maxlength: 100,
    save: (name) => spaces.createSpace(name),
  })
  // Navigates after the dialog has closed, because it restores the focus.
  if (id) router.go(paths.conversation(id))
}

export async function openNewConversationDialog({ spaces, router }, spaceId) {
  const id = await openTextDialog({
    title: t("conversation.new"),
    label: t("conversation.title"),
    hint: t("conversation.title_hint"),
    param: "title",
    action: t("conversation.create"),
    maxlength: 200,
    isOptional: true,
    save: (title) => spaces.createConversation(spaceId, title),
  })
  if (id) router.go(paths.conversation(id))
}

export function openRenameConversationDialog({ spaces }, conversation) {
  return openTextDialog({
    title: t("conversation.rename"),
    label: t("conversation.title"),
    param: "title",
    action: t("save"),
    value: conversation.title ?? "",
    maxlength: 200,
    save: (title) => spaces.renameConversation(conversation.id, title),
  })
}

export async function confirmDeleteConversation({ spaces, toasts }, conversation) {
  const isSure = await confirm({
    title: t("conversation.delete"),
    text: t("conversation.delete_text", { title: conversationName(conversation, null) }),
    action: t("delete"),
  })
  if (isSure) await spaces.deleteConversation(conversation.id).catch((error) => toasts.error(error))
}

export async function confirmDeleteSpace({ spaces, toasts, router }, space) {
  const isSure = await confirm({
    title: t("space.delete"),
    text: t("space.delete_text", { name: space.name }),
    action: t("delete"),
  })
  if (!isSure) return
  try {
    await spaces.deleteSpace(space.id)
    router.go(paths.home())
  } catch (error) {
    toasts.error(error)
  }
}

// Resolves with the result of `save`, or undefined if dismissed.
function openTextDialog({
  title,
  label,
  hint = null,
  param,
  action,
  value = "",
  maxlength,
  isOptional = false,
  save,
}) {
  return openDialog({
    title,
    content: (close) => {
      const text = field({
        label,
        hint,
        control: input({ value, maxlength: String(maxlength), autofocus: true, autocomplete: "off" }),
      })
      const submit = async () => {
        const words = text.control.value.trim()
        if (words === "" && !isOptional) return text.showError(t("field.needed"))
        close(await save(words))
      }
      const buttons = el("div", { class: "form__actions" }, submitButton(action))
      return form({ fields: { [param]: text }, submit, children: [text.node, buttons] })
    },
  })
}
