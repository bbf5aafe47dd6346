// Invites people: creates a link with a QR code and lists the active links. The link is shown only
// once; to get it again, the user replaces it by a new one.
import { el, replace } from "../../base/dom.js"
import { copyText } from "../../base/clipboard.js"
import { t } from "../../base/i18n.js"
import { shortTime } from "../../base/time.js"
import { renewalOf, stateOf } from "../../models/members/invites.js"
import { button, iconButton, submitButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { field, form, input, select } from "../components/form.js"

const ROLES = ["guest", "member", "moderator"]
const HOURS = [1, 24, 168, 720]
const USES = [1, 5, 20]

export function openInviteDialog(parts, space) {
  return openDialog({
    title: t("invite.title", { space: space.name }),
    content: () => new InviteDialog(parts, space.id).nodes,
  })
}

class InviteDialog {
  #parts
  #spaceId
  #shown = el("section", { class: "invite", "aria-live": "polite", hidden: true })
  #list = el("ul", { class: "invite__list" })
  #active = el("section", { hidden: true })
  #pendingList = el("ul", { class: "invite__list" })
  #pending = el("section", { hidden: true })

  constructor(parts, spaceId) {
    this.#parts = parts
    this.#spaceId = spaceId
    replace(this.#active, el("h3", { class: "field__label" }, t("invite.active")), this.#list)
    replace(this.#pending, el("h3", { class: "field__label" }, t("invitation.pending")), this.#pendingList)
    this.#reload()
    this.#reloadPending()
  }

  get nodes() {
    return [this.#form(), this.#shown, this.#active, this.#pending]
  }

  // Private

  #form() {
    const role = roleField()
    const hours = field({
      label: t("invite.expires_in"),
      control: select(
        HOURS.map((it) => [String(it), t(`invite.hours_${it}`)]),
        "168",
      ),
    })
    const uses = field({
      label: t("invite.uses"),
      control: select([["", t("invite.uses_any")], ...USES.map((n) => [String(n), t("invite.uses_n", { n })])], ""),
    })
    const submit = async () => {
      const options = {
        role: role.control.value,
        hours: Number(hours.control.value),
        maxUses: Number(uses.control.value) || null,
      }
      this.#show(await this.#parts.invites.create(this.#spaceId, options), options)
      this.#reload()
    }
    const pair = el("div", { class: "invite__pair" }, hours.node, uses.node)
    const actions = el("div", { class: "form__actions" }, submitButton(t("invite.create")))
    return form({
      fields: { role, expires_in_hours: hours, max_uses: uses },
      submit,
      children: [role.node, pair, actions],
    })
  }

  // The link is known only in this response.
  #show(invite, options) {
    const { url, qr_svg: svg } = invite
    const link = input({ class: "input input--code", readonly: true, value: url, "aria-label": t("invite.link") })
    link.addEventListener("focus", () => link.select())
    replace(
      this.#shown,
      el(
        "div",
        { class: "field__row" },
        link,
        button(t("tools.copy"), { look: "primary", icon: "copy", click: () => this.#copy(url) }),
      ),
      el("img", {
        class: "invite__picture",
        src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`,
        alt: url,
      }),
      el(
        "div",
        { class: "invite__note" },
        el("p", { class: "field__hint" }, t("invite.once")),
        button(t("invite.new"), {
          look: "small quiet",
          icon: "retry",
          click: () => this.#try(() => this.#replace(invite, options)),
        }),
      ),
    )
    this.#shown.dataset.invite = invite.id
    this.#shown.hidden = false
    this.#shown.scrollIntoView({ block: "nearest" })
  }

  async #replace(old, options) {
    this.#show(await this.#parts.invites.replace(this.#spaceId, old, options), options)
    await this.#reload()
  }

  async #revoke(id) {
    await this.#parts.invites.revoke(id)
    if (this.#shown.dataset.invite === String(id)) this.#shown.hidden = true
    await this.#reload()
  }

  async #copy(url) {
    this.#parts.toasts.show((await copyText(url)) ? t("tools.copied") : t("tools.copy_failed"))
  }

  async #reload() {
    await this.#try(async () => {
      const invites = await this.#parts.invites.list(this.#spaceId)
      this.#active.hidden = invites.length === 0
      replace(
        this.#list,
        invites.map((invite) => this.#item(invite)),
      )
    })
  }

  // Pending invitations of users. Their names are known when they accept.
  async #reloadPending() {
    await this.#try(async () => {
      const pending = await this.#parts.invites.pending(this.#spaceId)
      this.#pending.hidden = pending.length === 0
      replace(
        this.#pendingList,
        pending.map((invitation) => this.#pendingItem(invitation)),
      )
    })
  }

  #pendingItem({ id, user_id: user, role, expires_at: until }) {
    const revoke = async () => {
      await this.#parts.invites.revokeInvitation(id)
      await this.#reloadPending()
    }
    const who = t("invitation.person", { id: user })
    return el(
      "li",
      { class: "list__item", "data-invitation": id },
      el(
        "div",
        { class: "list__main" },
        el("span", { class: "tag" }, t(`role.${role}`)),
        el("p", { class: "field__hint" }, [who, t("invite.until", { at: shortTime(Date.parse(until)) })].join(" · ")),
      ),
      iconButton("trash", t("invitation.revoke", { who }), {
        look: "small",
        click: () => this.#try(revoke),
      }),
    )
  }

  #item(invite) {
    const state = stateOf(invite, Date.now())
    const role = t(`role.${invite.role}`)
    return el(
      "li",
      { class: "list__item", "data-invite": invite.id, "data-state": state },
      el(
        "div",
        { class: "list__main" },
        el("span", { class: "tag" }, role),
        el("p", { class: "field__hint" }, [usesOf(invite), endOf(invite, state)].join(" · ")),
      ),
      iconButton("retry", t("invite.new_for", { role }), {
        look: "small",
        click: () => this.#try(() => this.#replace(invite, renewalOf(invite))),
      }),
      iconButton("trash", t("invite.revoke", { role }), {
        look: "small",
        click: () => this.#try(() => this.#revoke(invite.id)),
      }),
    )
  }

  async #try(act) {
    try {
      await act()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }
}

// The hint explains the selected role.
function roleField() {
  const control = select(
    ROLES.map((role) => [role, t(`role.${role}`)]),
    "guest",
  )
  const it = field({ label: t("invite.role"), hint: t("invite.role_guest"), control })
  control.addEventListener("change", () => {
    it.node.querySelector(".field__hint").textContent = t(`invite.role_${control.value}`)
  })
  return it
}

function usesOf({ uses, max_uses: most }) {
  return most === null ? t("invite.used", { n: uses }) : t("invite.used_of", { n: uses, most })
}

function endOf({ expires_at: until }, state) {
  if (state === "used_up") return t("invite.used_up")
  const at = until && shortTime(Date.parse(until))
  return state === "expired" ? t("invite.expired", { at }) : t("invite.until", { at })
}
