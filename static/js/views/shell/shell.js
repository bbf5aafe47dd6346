// The three columns of the page. On narrow screens the outer two are drawers, one at a time, over a
// backdrop; they are closed by Esc, the backdrop or navigation, and the focus returns.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"
import Banner from "./banner.js"
import ConversationView from "../conversation/conversation.js"
import { closeDialogs } from "../components/dialog.js"
import { emptyState } from "../components/empty_state.js"
import { explain } from "../components/error_messages.js"
import JobList from "../files/job_list.js"
import LoadingPage from "./loading_page.js"
import Panel from "./panel.js"
import { registerSearchShortcut } from "./search_shortcut.js"
import Sidebar from "./sidebar.js"
import { dropRequestedDialog, importModule } from "../on_demand.js"
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
  // A ConversationView is shown only while its conversation is the open one.
  #view = null

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
    this.#parts.store.on("spaces", () => this.#markUnread())
    this.#parts.store.on("open", () => this.#markOpen())
    this.#markOpen()
    for (const media of [NARROW, MEDIUM]) media.addEventListener("change", () => this.closeDrawer())
    this.#parts.store.on("removed", (removal) => this.#leaveRemoved(removal))
  }

  // Actions

  async show(route) {
    dropRequestedDialog()
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
    this.#showPage(
      this.#emptyState({
        title: t("unknown.title"),
        text: t("unknown.text"),
        action: { href: "/", label: t("unknown.home") },
      }),
    )
  }

  #showConversation(id, messageId) {
    if (this.#view?.conversationId !== id) return this.#openConversation(id, messageId)
    if (messageId) this.#view.reveal(messageId)
  }

  async #openConversation(id, messageId = null) {
    const { spaces, store, local } = this.#parts
    const loading = this.#showLoading(id)
    let view = loading
    try {
      if (messageId) loading.reveal(messageId)
      if (!store.conversation(id)) await spaces.loadConversation(id)
      if (this.#view !== loading) return
      const ready = spaces.open(id)
      // Without the roster, no author is known, and the messages would move when it arrives.
      if (!store.hasRoster(store.conversation(id).space_id)) await ready.catch(() => {})
      if (this.#view !== loading) return
      view = new ConversationView(this.#parts)
      this.#setView(view)
      if (loading.messageId) view.reveal(loading.messageId)
      local.setItem(LAST, id)
      await ready
    } catch (error) {
      if (this.#view === view) this.#showFailed(error)
    }
  }

  // A conversation whose members could not be loaded again is shown nevertheless.
  #showFailed(error) {
    if (error.status === 404) return this.#showMissing()
    if (this.#view instanceof ConversationView) return this.#parts.toasts.error(error)
    const run = () => this.show(this.#parts.router.current)
    this.#showPage(
      this.#emptyState({ title: t("load_failed.title"), text: explain(error), action: { run, label: t("retry") } }),
    )
  }

  #showMissing() {
    this.#showPage(
      this.#emptyState({
        title: t("missing.title"),
        text: t("missing.text"),
        action: { href: "/", label: t("unknown.home") },
      }),
    )
  }

  async #showSettings(part) {
    const module = await this.#load(() => import("../settings/settings.js"))
    if (module) this.#showPage(new module.default(this.#parts, part))
  }

  async #showAdmin(part) {
    const module = await this.#load(() => import("../../admin/page.js"))
    if (module?.isAdminPage(part)) this.#showPage(new module.default(this.#parts, part))
    else if (module) this.#showUnknown()
  }

  // Resolves with the module of a page; null if it cannot be loaded or another page was opened in the
  // meantime.
  async #load(load) {
    const loading = this.#showLoading()
    const module = await importModule(load)
    if (this.#view !== loading) return null
    if (!module) this.#showLoadFailed()
    return module
  }

  #showLoading(conversationId = null) {
    const loading = new LoadingPage({ openSidebar: () => this.openDrawer("sidebar"), conversationId })
    this.#showPage(loading)
    return loading
  }

  #showLoadFailed() {
    const action = { run: () => location.reload(), label: t("reload") }
    this.#showPage(this.#emptyState({ title: t("load_failed.title"), text: t("load_failed.text"), action }))
  }

  #goHome() {
    const { spaces, local, router, store } = this.#parts
    const id = spaces.home(Number(local.getItem(LAST)))
    if (id) return router.go(paths.conversation(id), { replace: true })
    this.#showPage(this.#emptyState(store.user.is_guest ? this.#noSpacesForGuest() : this.#noSpaces()))
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

  // Shows that the open conversation is gone or not accessible. If the reason is unknown, it is derived
  // from the list of spaces.
  async #leaveRemoved({ reason, name, spaceId }) {
    const { spaces, store, local } = this.#parts
    local.removeItem(LAST)
    dropRequestedDialog()
    closeDialogs()
    this.closeDrawer()
    const page = this.#showRemoved(reason ?? "unknown", name, spaceId)
    if (reason) return
    const isKnown = await spaces.load().then(
      () => true,
      () => false,
    )
    if (!isKnown || this.#view !== page) return
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
    this.#showPage(page)
    this.#parts.title.set(title)
    page.querySelector("h1").focus()
    return page
  }

  #emptyState(content) {
    return emptyState({ ...content, openSidebar: () => this.openDrawer("sidebar") })
  }

  // Shows a page that belongs to no conversation. The view of the open one is removed first, because it
  // acts on the conversation that is open.
  #showPage(page) {
    this.#removeView()
    this.#parts.store.closeConversation()
    this.#setView(page)
  }

  // `view` is a view with `mount` and `unmount`, or a node.
  #setView(view) {
    this.#removeView()
    new Banner(this.#main, this.#parts).mount()
    this.#view = view
    if (view.mount) view.mount(this.#main)
    else this.#main.append(view)
  }

  #removeView() {
    this.#view?.unmount?.()
    this.#view = null
    replace(this.#main)
  }

  #markOpen() {
    this.#node.dataset.conversation = this.#parts.store.openConversation ? "open" : "none"
    this.#markUnread()
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
