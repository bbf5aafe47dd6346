// A pending invitation of the user: accept it, with another name if the own one is taken, or decline
// it.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { shortTime } from "../../base/time.js"
import { paths } from "../../router.js"
import { button, submitButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { field, form, input } from "../components/form.js"

export function openInvitationDialog(parts, invitation) {
  return openDialog({
    title: t("invitation.title", { space: invitation.space.name }),
    content: (close) => [lead(invitation), answerForm(parts, invitation, close)],
  })
}

// The field for another name, hidden until the server reports that the name is taken.
export function otherNameField() {
  const name = field({
    label: t("invitation.name"),
    hint: t("invitation.name_hint"),
    control: input({ name: "display_name", autocomplete: "nickname", maxlength: "100" }),
  })
  name.node.hidden = true
  const show = (error) => {
    if (error.code === "name_taken_here") name.node.hidden = false
    if (!name.node.hidden) name.control.focus()
  }
  const value = () => (name.node.hidden ? null : name.control.value.trim() || null)
  return { ...name, show, value }
}

function lead({ role, invited_by_name: name, expires_at: until }) {
  const by = name ? t("invitation.by", { name }) : null
  const as = t(`join.role_${role}`)
  return el(
    "p",
    { class: "dialog__lead" },
    [by, as, t("invite.until", { at: shortTime(Date.parse(until)) })].filter(Boolean).join(" · "),
  )
}

function answerForm(parts, invitation, close) {
  const name = otherNameField()
  const submit = async () => {
    const membership = await parts.invites.accept(invitation.id, name.value())
    await parts.spaces.load()
    close(true)
    const first = parts.spaces.firstOf(membership.space_id)
    if (first) parts.router.go(paths.conversation(first))
  }
  const decline = async () => {
    try {
      await parts.invites.decline(invitation.id)
      close(true)
    } catch (error) {
      parts.toasts.error(error)
    }
  }
  const actions = el(
    "div",
    { class: "form__actions" },
    button(t("invitation.decline"), { look: "quiet", "data-act": "decline", click: decline }),
    submitButton(t("invitation.accept")),
  )
  return form({
    fields: { display_name: name },
    submit,
    onError: name.show,
    children: [name.node, actions],
  })
}
