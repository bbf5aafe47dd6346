// The left sidebar: spaces with their conversations, unread counts, and the account menu.
import { el, icon, reconcile, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { conversationTree } from "../../models/conversation/conversation_tree.js"
import { may } from "../../models/members/rights.js"
import { unreadIn } from "../../models/conversation/unread.js"
import { paths } from "../../router.js"
import { avatar } from "../components/avatar.js"
import { showBadge } from "../components/badge.js"
import { spaceFileItems } from "../files/export_items.js"
import { iconButton } from "../components/button.js"
import { confirmSignOut } from "../sign_in/guest.js"
import { menuButton, openMenu } from "../components/menu.js"
import { conversationName } from "../conversation/conversation_name.js"
import {
  connectModel,
  openInvitationDialog,
  openInviteDialog,
  openSearch,
  openSpaceImportDialog,
} from "../on_demand.js"
import {
  openNewConversationDialog,
  openRenameConversationDialog,
  openNewSpaceDialog,
  confirmDeleteConversation,
  confirmDeleteSpace,
} from "../spaces/space_dialogs.js"

export default class Sidebar {
  #root
  #parts
  #title = el("div", { class: "sidebar__label" })
  #invitations = el("div", { class: "sidebar__invitations" })
  #list
  #account
  #collapsed = new Set()

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    this.#list = el("div", {})
    this.#account = el("footer", { class: "sidebar__foot" })
    const body = el("div", { class: "sidebar__body" }, this.#invitations, this.#title, this.#list)
    replace(this.#root, this.#head(), body, this.#account)
    const { store } = this.#parts
    for (const name of ["spaces", "open"]) store.on(name, () => this.#update())
    store.on("session", () => this.#updateAccount())
    store.on("invitations", () => this.#updateInvitations())
    this.#update()
    this.#updateAccount()
    this.#updateInvitations()
  }

  // Private

  #head() {
    const close = iconButton("close", t("sidebar.close"), {
      class: "for-sidebar-drawer",
      click: () => this.#parts.shell.closeDrawer(),
    })
    const brand = el(
      "a",
      { class: "sidebar__brand", href: "/" },
      icon("logo", "sidebar__logo"),
      t("app.name"),
    )
    const search = iconButton("search", t("search.open"), { click: () => openSearch(this.#parts) })
    return el("header", { class: "sidebar__head" }, brand, search, close)
  }

  // Pending invitations are listed above the spaces.
  #updateInvitations() {
    const rows = this.#parts.store.invitations.map((invitation) => {
      const click = () => openInvitationDialog(this.#parts, invitation)
      const props = { class: "sidebar-item__link", type: "button", "data-invitation": invitation.id, on: { click } }
      const name = el("bdi", { class: "truncate grow" }, invitation.space.name)
      return el("div", { class: "sidebar-item" }, el("button", props, icon("person"), name))
    })
    const title = el("div", { class: "sidebar__label" }, el("h2", {}, t("sidebar.invitations")))
    replace(this.#invitations, rows.length > 0 && [title, rows])
  }

  // Guests cannot create a space.
  #updateTitle() {
    const isGuest = this.#parts.store.user.is_guest
    const add = iconButton("plus", t("space.new"), { look: "small", click: () => openNewSpaceDialog(this.#parts) })
    replace(this.#title, el("h2", {}, t("sidebar.spaces")), !isGuest && add)
  }

  #update() {
    const { spaces } = this.#parts.store
    reconcile(this.#list, spaces.length ? spaces : [{ id: "none" }], {
      key: (space) => `s-${space.id}`,
      create: (space) =>
        space.id === "none" ? el("p", { class: "sidebar__empty" }, this.#emptyText()) : this.#createSpace(space),
      update: (node, space) => {
        if (space.id !== "none") this.#updateSpace(node, space)
      },
    })
  }

  #emptyText() {
    return this.#parts.store.user.is_guest ? t("sidebar.empty_guest") : t("sidebar.empty")
  }

  #createSpace({ id }) {
    const listId = `space-${id}-list`
    const name = el(
      "button",
      { class: "space__name", type: "button", "aria-controls": listId, on: { click: () => this.#toggleCollapsed(id) } },
      icon("chevron"),
      el("bdi", { class: "truncate grow" }),
      el("span", { class: "badge badge--soft", hidden: true }),
    )
    const menu = menuButton({
      label: "",
      className: "icon-button icon-button--small icon-button--reveal",
      items: () => this.#spaceItems(id),
    })
    return el(
      "section",
      { class: "space" },
      el("div", { class: "space__row" }, name, menu),
      el("div", { class: "space__list", id: listId }),
    )
  }

  #updateSpace(node, space) {
    const [name] = node.querySelectorAll(".space__name")
    const isOpen = !this.#collapsed.has(space.id)
    name.setAttribute("aria-expanded", String(isOpen))
    name.querySelector("bdi").textContent = space.name
    node
      .querySelector(".space__row > .icon-button")
      .setAttribute("aria-label", t("space.menu", { name: space.name }))
    const { store } = this.#parts
    showBadge(name.querySelector(".badge"), store.unread(space.id, store.openConversation?.conversationId))
    const list = node.querySelector(".space__list")
    list.hidden = !isOpen
    const conversations = conversationTree(store.conversations(space.id))
    const rows = may(space.my_role, "new_conversation")
      ? [...conversations, { id: "add", space_id: space.id }]
      : conversations
    reconcile(list, rows, {
      key: (row) => `c-${row.id}`,
      create: (row) => (row.id === "add" ? this.#addButton(space.id) : this.#createConversation(row)),
      update: (row, conversation) => {
        if (conversation.id !== "add") this.#updateConversation(row, conversation, space)
      },
    })
  }

  #addButton(spaceId) {
    const click = () => openNewConversationDialog(this.#parts, spaceId)
    return el(
      "div",
      { class: "sidebar-item" },
      el(
        "button",
        { class: "sidebar-item__link sidebar-item__add", type: "button", on: { click } },
        icon("plus"),
        t("conversation.new"),
      ),
    )
  }

  #createConversation({ id }) {
    const link = el(
      "a",
      { class: "sidebar-item__link", href: paths.conversation(id) },
      icon("branch"),
      el("bdi", { class: "truncate grow" }),
      el("span", { class: "badge", hidden: true }),
    )
    const menu = menuButton({
      label: "",
      className: "icon-button icon-button--small icon-button--reveal",
      items: () => this.#conversationItems(id),
    })
    return el("div", { class: "sidebar-item" }, link, menu)
  }

  #updateConversation(node, conversation, space) {
    const isOpen = this.#parts.store.openConversation?.conversationId === conversation.id
    const unread = isOpen ? 0 : unreadIn(conversation)
    node.classList.toggle("sidebar-item--open", isOpen)
    node.classList.toggle("sidebar-item--unread", unread > 0)
    const link = node.querySelector("a")
    if (isOpen) link.setAttribute("aria-current", "page")
    else link.removeAttribute("aria-current")
    node.querySelector("bdi").textContent = conversationName(conversation, space)
    node.dataset.depth = conversation.depth
    node.querySelector("a > .icon").toggleAttribute("hidden", conversation.kind === "root")
    showBadge(node.querySelector(".badge"), unread)
    const menu = node.querySelector(".icon-button")
    menu.hidden = this.#conversationItems(conversation.id).length === 0
    menu.setAttribute("aria-label", t("conversation.menu_of", { name: conversationName(conversation, space) }))
  }

  #spaceItems(id) {
    const space = this.#parts.store.space(id)
    const items = []
    if (may(space.my_role, "new_conversation"))
      items.push({
        label: t("conversation.new"),
        icon: "plus",
        run: () => openNewConversationDialog(this.#parts, id),
      })
    if (may(space.my_role, "invite"))
      items.push({ label: t("invite.people"), icon: "person", run: () => openInviteDialog(this.#parts, space) })
    items.push({ label: t("space.settings"), icon: "gear", run: () => this.#openSettings(space) })
    items.push(...spaceFileItems(this.#parts, space))
    if (may(space.my_role, "delete_space"))
      items.push({
        label: t("space.delete"),
        icon: "trash",
        danger: true,
        run: () => confirmDeleteSpace(this.#parts, space),
      })
    return items
  }

  #conversationItems(id) {
    const { store } = this.#parts
    const conversation = store.conversation(id)
    const space = store.space(conversation?.space_id)
    if (!conversation || !space) return []
    const items = []
    if (may(space.my_role, "rename_conversation"))
      items.push({
        label: t("conversation.rename"),
        icon: "edit",
        run: () => openRenameConversationDialog(this.#parts, conversation),
      })
    // The first conversation of a space cannot be deleted.
    if (may(space.my_role, "delete_conversation") && id !== space.root_conversation_id) {
      items.push({
        label: t("conversation.delete"),
        icon: "trash",
        danger: true,
        run: () => confirmDeleteConversation(this.#parts, conversation),
      })
    }
    return items
  }

  #openSettings(space) {
    const { store, router, shell, spaces } = this.#parts
    if (store.openSpace?.id !== space.id) router.go(paths.conversation(spaces.firstOf(space.id)))
    shell.openPanel("settings")
  }

  #toggleCollapsed(id) {
    if (this.#collapsed.has(id)) this.#collapsed.delete(id)
    else this.#collapsed.add(id)
    this.#update()
  }

  #updateAccount() {
    const { user } = this.#parts.store
    this.#updateTitle()
    const button = el(
      "button",
      {
        class: "sidebar__me",
        type: "button",
        "aria-haspopup": "menu",
        "aria-label": t("account.menu", { name: user.display_name }),
      },
      avatar({ name: user.display_name, size: "small" }),
      el("bdi", { class: "truncate grow" }, user.display_name),
      icon("more"),
    )
    button.addEventListener("click", () => openMenu(button, this.#accountItems()))
    const keep = el("a", { class: "sidebar__keep", href: paths.settings("profile") }, t("guest.sidebar"))
    replace(this.#account, user.is_guest && keep, button)
  }

  #accountItems() {
    const { router, store } = this.#parts
    const items = [
      { label: t("settings.profile"), icon: "person", run: () => router.go(paths.settings("profile")) },
      { label: t("settings.personas"), icon: "speak", run: () => router.go(paths.settings("personas")) },
    ]
    if (!store.user.is_guest)
      items.push(
        { label: t("settings.keys"), icon: "key", run: () => router.go(paths.settings("keys")) },
        { label: t("chats.import_space"), icon: "up", run: () => openSpaceImportDialog(this.#parts) },
      )
    if (store.user.role === "admin")
      items.push(
        { label: t("provider.connect"), icon: "plug", run: () => connectModel(this.#parts) },
        { label: t("admin.open"), icon: "gear", run: () => router.go(paths.admin("overview")) },
      )
    items.push({ label: t("sign_out"), icon: "leave", run: () => confirmSignOut(this.#parts) })
    return items
  }
}
