// The three columns. On a narrow screen the outer two are drawers: one at a time, over a veil,
// closed by Esc, by the veil or by going somewhere, with focus back where it was.
import AdminPage, { isAdminPage } from "../../admin/page.js"
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"
import Banner from "./banner.js"
import ConversationView from "../conversation/conversation.js"
import { closeDialogs } from "../components/dialog.js"
import { hollow } from "../components/empty_state.js"
import JobList from "../files/job_list.js"
import Panel from "./panel.js"
import Rail from "./sidebar.js"
import SettingsView from "../settings/settings.js"
import { listenForSearch } from "../conversation/search_dialog.js"
import { askForSpace } from "../spaces/space_dialogs.js"

// As in css/layout.css.
const NARROW = matchMedia("(max-width: 820px)")
const MEDIUM = matchMedia("(max-width: 1180px)")
const LAST = "troupe.last_conversation"
const PANEL = "troupe.panel"

export default class Shell {
  #root
  #parts
  #node
  #rail
  #stage
  #panel
  #opener = null
  #view = null
  #route = 0

  constructor(root, parts) {
    this.#root = root
    parts.shell = this
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    this.#rail = el("nav", { class: "shell__sidebar sidebar", id: "sidebar", "aria-label": t("sidebar.label") })
    this.#stage = el("main", { class: "shell__main", id: "main" })
    this.#panel = el("aside", { class: "shell__panel panel", id: "panel", "aria-label": t("panel.label") })
    const veil = el("div", { class: "shell__backdrop", on: { click: () => this.closeDrawer() } })
    this.#node = el("div", { class: "shell" }, this.#rail, this.#stage, this.#panel, veil)
    this.#setPanel(this.#parts.local.getItem(PANEL) ?? "open")
    replace(this.#root, this.#node)
    new Rail(this.#rail, this.#parts).mount()
    new Panel(this.#panel, this.#parts).mount()
    new JobList(this.#parts).mount()
    listenForSearch(this.#parts)
    document.addEventListener("keydown", this.#onKey)
    for (const name of ["spaces", "open"]) this.#parts.store.on(name, () => this.#markUnread())
    this.#markUnread()
    for (const media of [NARROW, MEDIUM]) media.addEventListener("change", () => this.closeDrawer())
    this.#parts.store.on("removed", (lost) => this.#leaveRemoved(lost))
  }

  // Actions

  async show(route) {
    this.#route += 1
    this.closeDrawer()
    if (route.name === "conversation") return this.#showConversation(route.conversationId, route.messageId)
    if (route.name === "settings") return this.#showSettings(route.part)
    if (route.name === "admin" && isAdminPage(route.part) && this.#parts.store.user.role === "admin")
      return this.#showAdmin(route.part)
    if (route.name === "home") return this.#goHome()
    this.#leaveRoom()
    this.#put(
      this.#hollow({
        title: t("unknown.title"),
        text: t("unknown.text"),
        action: { href: "/", label: t("unknown.home") },
      }),
    )
  }

  // The right panel: beside the text when there is room, else a drawer.
  togglePanel() {
    if (MEDIUM.matches)
      return this.#node.dataset.drawer === "panel" ? this.closeDrawer() : this.openDrawer("panel")
    this.#setPanel(this.#node.dataset.panel === "open" ? "closed" : "open")
    this.#parts.local.setItem(PANEL, this.#node.dataset.panel)
  }

  // Makes a tab of the panel visible, wherever the panel is.
  openPanel(tab) {
    this.#parts.store.emit("panel", tab)
    if (MEDIUM.matches) this.openDrawer("panel")
    else this.#setPanel("open")
  }

  openDrawer(name) {
    if (this.#node.dataset.drawer === name) return
    this.#opener = document.activeElement
    this.#node.dataset.drawer = name
    const drawer = name === "sidebar" ? this.#rail : this.#panel
    for (const part of [this.#rail, this.#stage, this.#panel]) part.inert = part !== drawer
    drawer.querySelector("button, a, [tabindex='0']")?.focus()
  }

  closeDrawer() {
    if (!this.#node?.dataset.drawer) return
    delete this.#node.dataset.drawer
    for (const part of [this.#rail, this.#stage, this.#panel]) part.inert = false
    if (this.#opener?.isConnected) this.#opener.focus()
    this.#opener = null
  }

  // Private

  async #showConversation(id, messageId) {
    const turn = this.#route
    const { spaces, store, local } = this.#parts
    if (store.room?.conversationId === id && this.#view) return messageId && this.#view.reveal?.(messageId)
    try {
      const ready = spaces.open(id)
      if (!store.conversation(id)) await ready
      if (turn !== this.#route) return
      this.#put(new ConversationView(this.#parts))
      if (messageId) this.#view.reveal(messageId)
      local.setItem(LAST, id)
      await ready
    } catch (error) {
      if (turn === this.#route) this.#showMissing(error)
    }
  }

  #showMissing(error) {
    if (error.status !== 404) this.#parts.toasts.error(error)
    if (error.status !== 404 && this.#view) return
    this.#leaveRoom()
    this.#put(
      this.#hollow({
        title: t("missing.title"),
        text: t("missing.text"),
        action: { href: "/", label: t("unknown.home") },
      }),
    )
  }

  #showSettings(part) {
    this.#leaveRoom()
    this.#put(new SettingsView(this.#parts, part))
  }

  #showAdmin(part) {
    this.#leaveRoom()
    this.#put(new AdminPage(this.#parts, part))
  }

  #goHome() {
    const { spaces, local, router, store } = this.#parts
    const id = spaces.home(Number(local.getItem(LAST)))
    if (id) return router.go(paths.conversation(id), { replace: true })
    this.#leaveRoom()
    this.#put(this.#hollow(store.user.is_guest ? this.#nothingForGuest() : this.#nothingYet()))
  }

  #nothingYet() {
    const run = () => askForSpace(this.#parts)
    return { title: t("empty.title"), text: t("empty.text"), action: { run, label: t("space.new") } }
  }

  // Who has no account makes no space: a link opens the next one.
  #nothingForGuest() {
    const action = { href: paths.settings("profile"), label: t("guest.keep") }
    return { title: t("empty.guest_title"), text: t("empty.guest_text"), action }
  }

  #leaveRoom() {
    this.#parts.store.closeRoom()
  }

  // The room that was open is gone, or one may not be in it any more. When nobody said which, the
  // list of spaces tells.
  async #leaveRemoved({ reason, name, spaceId }) {
    const { spaces, store, local } = this.#parts
    const turn = this.#route
    this.#leaveRoom()
    local.removeItem(LAST)
    closeDialogs()
    this.closeDrawer()
    this.#showRemoved(reason ?? "unknown", name, spaceId)
    if (reason) return
    const isKnown = await spaces.load().then(
      () => true,
      () => false,
    )
    if (!isKnown || turn !== this.#route) return
    this.#showRemoved(store.space(spaceId) ? "conversation_deleted" : "removed", name, spaceId)
  }

  #showRemoved(reason, name, spaceId) {
    const back = reason === "conversation_deleted" && this.#parts.spaces.firstOf(spaceId)
    const title = t(`removed.${reason}_title`, { name })
    const page = this.#hollow({
      title,
      text: t(`removed.${reason}_text`),
      action: back
        ? { href: paths.conversation(back), label: t("removed.back") }
        : { href: "/", label: t("unknown.home") },
    })
    page.dataset.removed = reason
    this.#put(page)
    this.#parts.title.set(title)
    page.querySelector("h1").focus()
  }

  #hollow(words) {
    return hollow({ ...words, openRail: () => this.openDrawer("sidebar") })
  }

  // `view` is a view with mount and unmount, or a plain node.
  #put(view) {
    this.#view?.unmount?.()
    replace(this.#stage)
    new Banner(this.#stage, this.#parts).mount()
    this.#view = view
    if (view.mount) view.mount(this.#stage)
    else this.#stage.append(view)
    this.#node.dataset.conversation = this.#parts.store.room ? "open" : "none"
  }

  // Where the rail is a drawer, its button says that something waits in there.
  #markUnread() {
    const { store } = this.#parts
    const open = store.room?.conversationId
    const waits = store.spaces.some((space) => store.unread(space.id, open) > 0)
    this.#node.dataset.unread = waits ? "some" : "none"
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
