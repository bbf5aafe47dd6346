// The main column of an open conversation: header, timeline, typing indicator, queue bar, composer.
import { el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { paths } from "../../router.js"
import { iconButton } from "../components/button.js"
import Composer from "./composer.js"
import { exportItems } from "../files/export_items.js"
import { sidebarButton } from "../components/empty_state.js"
import { openBookmarksDialog, openInviteDialog, openSummariesDialog } from "../on_demand.js"
import { menuButton } from "../components/menu.js"
import { conversationName } from "./conversation_name.js"
import PresenceList from "./presence_list.js"
import QueueBar from "../queue/queue_bar.js"
import {
  confirmDeleteConversation,
  openNewConversationDialog,
  openRenameConversationDialog,
} from "../spaces/space_dialogs.js"
import TimelineView from "./timeline.js"
import ToolApprovals from "../message/tool_approvals.js"
import TypingIndicator from "./typing_indicator.js"

// On touch devices the focus would open a keyboard that hides half of the page.
const TOUCH = matchMedia("(hover: none) and (pointer: coarse)")

export default class ConversationView {
  conversationId
  #parts
  #head
  #presenceList
  #signature = null
  #children = []
  #timeline
  #stops = []

  constructor(parts) {
    this.#parts = parts
    this.conversationId = parts.store.openConversation.conversationId
  }

  // Lifecycle

  mount(main) {
    const { store } = this.#parts
    this.#head = el("header", { class: "main__head" })
    const body = el("div", { class: "main__body" })
    const typing = el("div", { class: "typing-indicator", "aria-live": "off" })
    const queue = el("section", { class: "queue", "aria-label": t("queue.label") })
    const approvals = el("section", { class: "approvals", "aria-label": t("tools.approvals"), "aria-live": "polite" })
    const form = el("form", { class: "composer", "aria-label": t("composer.label") })
    main.append(this.#head, body, typing, approvals, queue, form)
    const timeline = new TimelineView(body, this.#parts)
    this.#timeline = timeline
    const composer = new Composer(form, this.#parts, {
      onSent: () => timeline.toEnd(),
      onEditLast: () => timeline.editMyLast(),
      onContinue: () => timeline.swipes.continueTail(),
      onBranch: (message) => timeline.swipes.openBranch(message),
    })
    this.#presenceList = new PresenceList(this.#parts)
    this.#children = [
      timeline,
      new TypingIndicator(typing, this.#parts),
      new ToolApprovals(approvals, this.#parts),
      new QueueBar(queue, this.#parts),
      composer,
      this.#presenceList,
    ]
    for (const child of this.#children) child.mount()
    this.#stops = [store.on("spaces", () => this.#updateHead())]
    this.#updateHead()
    if (!TOUCH.matches) composer.focus()
  }

  unmount() {
    for (const stop of this.#stops) stop()
    for (const child of this.#children) child.unmount()
  }

  // Scrolls to a message of this conversation.
  reveal(messageId) {
    this.#timeline.reveal(messageId)
  }

  // Private

  #updateHead() {
    const { store, shell } = this.#parts
    const { openConversationDocument: conversation, openSpace: space } = store
    if (!conversation || !space) return
    const title = conversationName(conversation, space)
    const parent = store.conversation(conversation.parent_conversation_id)
    const from = parent && conversationName(parent, space)
    // Replaces the header only if it has changed, so that an open menu stays open.
    const signature = JSON.stringify([conversation.id, title, space.name, space.my_role, from])
    if (signature === this.#signature) return
    this.#signature = signature
    this.#parts.title.set(title, space.name)
    const focused = this.#head.contains(document.activeElement) ? document.activeElement.dataset.id : null
    replace(
      this.#head,
      sidebarButton(() => shell.openDrawer("sidebar")),
      el(
        "div",
        { class: "main__titles" },
        el("h1", { class: "main__title truncate" }, el("bdi", {}, title)),
        el(
          "span",
          { class: "main__space truncate" },
          el("bdi", {}, space.name),
          parent && this.#crumb(parent, from),
        ),
      ),
      this.#presenceList.node,
      menuButton({
        label: t("conversation.menu"),
        className: "icon-button",
        items: () => this.#items(store.openConversationDocument, store.openSpace),
      }),
      iconButton("panel", t("panel.toggle"), {
        "data-id": "panel",
        "aria-controls": "panel",
        click: () => shell.togglePanel(),
      }),
    )
    if (focused) this.#head.querySelector(`[data-id="${focused}"]`)?.focus()
  }

  // A link to the parent conversation.
  #crumb(parent, name) {
    return el(
      "a",
      {
        class: "main__parent",
        href: paths.conversation(parent.id),
        "aria-label": t("conversation.parent", { title: name }),
        "data-id": "parent",
      },
      icon("branch"),
      el("bdi", {}, name),
    )
  }

  #items(conversation, space) {
    const items = []
    const role = space.my_role
    if (may(role, "rename_conversation"))
      items.push({
        label: t("conversation.rename"),
        icon: "edit",
        run: () => openRenameConversationDialog(this.#parts, conversation),
      })
    if (may(role, "new_conversation"))
      items.push({
        label: t("conversation.new"),
        icon: "plus",
        run: () => openNewConversationDialog(this.#parts, space.id),
      })
    if (may(role, "invite"))
      items.push({
        label: t("invite.people"),
        icon: "person",
        run: () => openInviteDialog(this.#parts, space),
      })
    items.push({
      label: t("bookmark.title"),
      icon: "bookmark",
      run: () => openBookmarksDialog(this.#parts, conversation),
    })
    items.push({
      label: t("summary.title"),
      icon: "list",
      run: () => openSummariesDialog(this.#parts, conversation),
    })
    items.push({
      label: t("space.settings"),
      icon: "gear",
      run: () => this.#parts.shell.openPanel("settings"),
    })
    items.push(...exportItems(conversation, role))
    if (may(role, "delete_conversation") && conversation.id !== space.root_conversation_id) {
      items.push({
        label: t("conversation.delete"),
        icon: "trash",
        danger: true,
        run: () => confirmDeleteConversation(this.#parts, conversation),
      })
    }
    return items
  }
}
