// A notice for each pending invitation of the user, with Accept and Decline. It stays until the invitation
// is answered or the notice is closed.
import { el, icon } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"
import { iconButton } from "../components/button.js"
import { openInvitationDialog } from "../on_demand.js"

// By invitation: the function that removes its notice. One that was closed is not shown again.
const shown = new Map()

export function showInvitationNotices(parts) {
  const { invitations } = parts.store
  const pending = new Set(invitations.map(({ id }) => id))
  for (const [id, remove] of shown) if (!pending.has(id)) remove()
  for (const invitation of invitations) {
    if (shown.has(invitation.id)) continue
    shown.set(invitation.id, parts.toasts.keep(notice(parts, invitation)))
  }
}

function notice(parts, invitation) {
  const { id, space, invited_by_name: name } = invitation
  const text = name
    ? t("invitation.notice", { name, space: space.name })
    : t("invitation.notice_short", { space: space.name })
  const node = el("div", { class: "toast toast--invitation", role: "group", "data-notice": id })
  const act = async ({ currentTarget: pressed }, run) => {
    pressed.disabled = true
    await run().catch((error) => parts.toasts.error(error))
    pressed.disabled = false
  }
  node.append(
    icon("person"),
    el("span", { class: "toast__text", role: "status" }, text),
    answer("decline", t("invitation.decline"), (event) => act(event, () => parts.invites.decline(id))),
    answer("accept", t("invitation.accept"), (event) => act(event, () => accept(parts, invitation))),
    iconButton("close", t("close"), { look: "small", click: () => node.remove() }),
  )
  return node
}

function answer(act, label, click) {
  return el("button", { class: "toast__action", type: "button", "data-act": act, on: { click } }, label)
}

// The dialog asks for another name if the user's name is taken in the space.
async function accept(parts, invitation) {
  try {
    const membership = await parts.invites.accept(invitation.id, null)
    await parts.spaces.load()
    const first = parts.spaces.firstOf(membership.space_id)
    if (first) parts.router.go(paths.conversation(first))
  } catch (error) {
    if (error.code !== "name_taken_here") throw error
    openInvitationDialog(parts, invitation)
  }
}
