// The three columns of the page. On narrow screens the outer two are drawers, one at a time, over a
// backdrop; they are closed by Esc, the backdrop or navigation, and the focus returns.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"
import Banner from "./banner.js"
import ConversationView from "../conversation/conversation.js"
import { closeDialogs } from "../components/dialog.js"
import { emptyState } from "../components/empty_state.js"
import JobList from "../files/job_list.js"
import Panel from "./panel.js"
import { registerSearchShortcut } from "./search_shortcut.js"
import Sidebar from "./sidebar.js"
import { loadModule } from "../on_demand.js"
import { openNewSpaceDialog } from "../spaces/space_dialogs.js"

// As in css/layout.css.
const NARROW = matchMedia("(max-width: 820px)")
const MEDIUM = matchMedia("(max-width: 1180px)")
const LAST = "troupe.last_conversation"
const PANEL = "troupe.panel"

export default class Shell {
  #root
  #parts
  #node
  #sidebar
  #main
  #panel
  #opener = null
  #view = null
  #request = 0

  constructor(root, parts) {
    this.#root = root
    parts.shell = this
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    this.#sidebar = el("nav", { class: "shell__sidebar sidebar", id: "sidebar", "aria-label": t("sidebar.label") })
    this.#main = el("main", { class: "shell__main", id: "main" })
    this.#panel = el("aside", { class: "shell__panel panel", id: "panel", "aria-label": t("panel.label") })
    const backdrop = el("div", { class: "shell__backdrop", on: { click: () => this.closeDrawer() } })
    this.#node = el("div", { class: "shell" }, this.#sidebar, this.#main, this.#panel, backdrop)
    this.#setPanel(this.#parts.local.getItem(PANEL) ?? "open")
    replace(this.#root, this.#node)
    new Sidebar(this.#sidebar, this.#parts).mount()
    new Panel(this.#panel, this.#parts).mount()
    new JobList(this.#parts).mount()
    registerSearchShortcut(this.#parts)
    document.addEventListener("keydown", this.#onKey)
    for (const name of ["spaces", "open"]) this.#parts.store.on(name, () => this.#markUnread())
    this.#markUnread()
    for (const media of [NARROW, MEDIUM]) media.addEventListener("change", () => this.closeDrawer())
    this.#parts.store.on("removed", (removal) => this.#leaveRemoved(removal))
  }

  // Actions

  async show(route) {
    this.#request += 1
    this.closeDrawer()
    if (route.name === "conversation") return this.#showConversation(route.conversationId, route.messageId)
    if (route.name === "settings") return this.#showSettings(route.part)
    if (route.name === "admin" && this.#parts.store.user.role === "admin") return this.#showAdmin(route.part)
    if (route.name === "home") return this.#goHome()
    this.#showUnknown()
  }

  // Shows or hides the right panel; on narrow screens it is a drawer.
  togglePanel() {
    if (MEDIUM.matches)
      return this.#node.dataset.drawer === "panel" ? this.closeDrawer() : this.openDrawer("panel")
    this.#setPanel(this.#node.dataset.panel === "open" ? "closed" : "open")
    this.#parts.local.setItem(PANEL, this.#node.dataset.panel)
  }

  // Shows a tab of the panel.
  openPanel(tab) {
    this.#parts.store.emit("panel", tab)
    if (MEDIUM.matches) this.openDrawer("panel")
    else this.#setPanel("open")
  }

  openDrawer(name) {
    if (this.#node.dataset.drawer === name) return
    this.#opener = document.activeElement
    this.#node.dataset.drawer = name
    const drawer = name === "sidebar" ? this.#sidebar : this.#panel
    for (const part of [this.#sidebar, this.#main, this.#panel]) part.inert = part !== drawer
    drawer.querySelector("button, a, [tabindex='0']")?.focus()
  }

  closeDrawer() {
    if (!this.#node?.dataset.drawer) return
    delete this.#node.dataset.drawer
    for (const part of [this.#sidebar, this.#main, this.#panel]) part.inert = false
    if (this.#opener?.isConnected) this.#opener.focus()
    this.#opener = null
  }

  // Private

  #showUnknown() {
    this.#closeConversation()
    this.#setView(
      this.#emptyState({
        title: t("unknown.title"),
        text: t("unknown.text"),
        action: { href: "/", label: t("unknown.home") },
      }),
    )
  }

  async #showConversation(id, messageId) {
    const request = this.#request
    const { spaces, store, local } = this.#parts
    if (store.openConversation?.conversationId === id && this.#view) return messageId && this.#view.reveal?.(messageId)
    try {
      const ready = spaces.open(id)
      if (!store.conversation(id)) await ready
      // Without the roster, no author is known, and the messages would move when it arrives.
      else if (!store.hasRoster(store.conversation(id).space_id)) await ready.catch(() => {})
      if (request !== this.#request) return
      this.#setView(new ConversationView(this.#parts))
      if (messageId) this.#view.reveal(messageId)
      local.setItem(LAST, id)
      await ready
    } catch (error) {
      if (request === this.#request) this.#showMissing(error)
    }
  }

  #showMissing(error) {
    if (error.status !== 404) this.#parts.toasts.error(error)
    if (error.status !== 404 && this.#view) return
    this.#closeConversation()
    this.#setView(
      this.#emptyState({
        title: t("missing.title"),
        text: t("missing.text"),
        action: { href: "/", label: t("unknown.home") },
      }),
    )
  }

  async #showSettings(part) {
    this.#closeConversation()
    const module = await this.#load(() => import("../settings/settings.js"))
    if (module) this.#setView(new module.default(this.#parts, part))
  }

  async #showAdmin(part) {
    this.#closeConversation()
    const module = await this.#load(() => import("../../admin/page.js"))
    if (module?.isAdminPage(part)) this.#setView(new module.default(this.#parts, part))
    else if (module) this.#showUnknown()
  }

  // Resolves with the module of a page; null if it cannot be loaded or another page was opened in the
  // meantime.
  async #load(load) {
    const request = this.#request
    const module = await loadModule(this.#parts, load)
    return request === this.#request ? module : null
  }

  #goHome() {
    const { spaces, local, router, store } = this.#parts
    const id = spaces.home(Number(local.getItem(LAST)))
    if (id) return router.go(paths.conversation(id), { replace: true })
    this.#closeConversation()
    this.#setView(this.#emptyState(store.user.is_guest ? this.#noSpacesForGuest() : this.#noSpaces()))
  }

  #noSpaces() {
    const run = () => openNewSpaceDialog(this.#parts)
    return { title: t("empty.title"), text: t("empty.text"), action: { run, label: t("space.new") } }
  }

  // Guests cannot create a space.
  #noSpacesForGuest() {
    const action = { href: paths.settings("profile"), label: t("guest.keep") }
    return { title: t("empty.guest_title"), text: t("empty.guest_text"), action }
  }

  #closeConversation() {
    this.#parts.store.closeConversation()
  }

  // Shows that the open conversation is gone or not accessible. If the reason is unknown, it is derived
  // from the list of spaces.
  async #leaveRemoved({ reason, name, spaceId }) {
    const { spaces, store, local } = this.#parts
    const request = this.#request
    this.#closeConversation()
    local.removeItem(LAST)
    closeDialogs()
    this.closeDrawer()
    this.#showRemoved(reason ?? "unknown", name, spaceId)
    if (reason) return
    const isKnown = await spaces.load().then(
      () => true,
      () => false,
    )
    if (!isKnown || request !== this.#request) return
    this.#showRemoved(store.space(spaceId) ? "conversation_deleted" : "removed", name, spaceId)
  }

  #showRemoved(reason, name, spaceId) {
    const back = reason === "conversation_deleted" && this.#parts.spaces.firstOf(spaceId)
    const title = t(`removed.${reason}_title`, { name })
    const page = this.#emptyState({
      title,
      text: t(`removed.${reason}_text`),
      action: back
        ? { href: paths.conversation(back), label: t("removed.back") }
        : { href: "/", label: t("unknown.home") },
    })
    page.dataset.removed = reason
    this.#setView(page)
    this.#parts.title.set(title)
    page.querySelector("h1").focus()
  }

  #emptyState(content) {
    return emptyState({ ...content, openSidebar: () => this.openDrawer("sidebar") })
  }

  // `view` is a view with `mount` and `unmount`, or a node.
  #setView(view) {
    this.#view?.unmount?.()
    replace(this.#main)
    new Banner(this.#main, this.#parts).mount()
    this.#view = view
    if (view.mount) view.mount(this.#main)
    else this.#main.append(view)
    this.#node.dataset.conversation = this.#parts.store.openConversation ? "open" : "none"
  }

  // On narrow screens the menu button shows that there are unread messages.
  #markUnread() {
    const { store } = this.#parts
    const open = store.openConversation?.conversationId
    const hasUnread = store.spaces.some((space) => store.unread(space.id, open) > 0)
    this.#node.dataset.unread = hasUnread ? "some" : "none"
  }

  #setPanel(state) {
    this.#node.dataset.panel = state
  }

  #onKey = (event) => {
    if (event.key !== "Escape" || !this.#node.dataset.drawer || event.defaultPrevented) return
    if (document.querySelector("dialog[open], [popover]:popover-open")) return
    event.preventDefault()
    this.closeDrawer()
  }
}
