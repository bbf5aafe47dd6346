// The timeline: rows in order, older ones on the way up, the end kept in view, new ones announced.
//
// It is a log by role, but silent: a text that is being written changes twenty times a second.
// Finished messages are read once, by the announcer.
import { el, icon, reconcile } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { dayName } from "../base/time.js"
import { oncePerFrame, throttle } from "../base/timing.js"
import MessageWindow from "../models/message_window.js"
import Paginator from "../models/paginator.js"
import { rows } from "../models/rows.js"
import Announcer from "./announcer.js"
import Beginning from "./beginning.js"
import { button } from "./buttons.js"
import MessageView from "./message.js"
import MessageTools from "./message_tools.js"
import RunCard from "./run_card.js"
import Scroll from "./scroll.js"
import Versions from "./versions.js"

const READ_EVERY_MS = 1500
// On the way to a message far back.
const LONG_PAGE = 200

export default class TimelineView {
  #root
  #parts
  #nodes = new Map()
  #window = new MessageWindow()
  #unseen = 0
  #unreadAfter = null
  #readSeq = 0
  #wanted = null
  #stops = []

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    const { store, room: actions, announcer } = this.#parts
    const { room } = store
    this.room = room
    this.#build()
    this.paginator = new Paginator(room.timeline, (seq, limit) =>
      actions.olderPage(room.conversationId, seq, limit),
    )
    this.scroll = new Scroll(this.scroller, (place) => this.#onMove(place))
    this.scroll.mount(this.inner)
    this.announcer = new Announcer(announcer)
    const viewOf = (node) => this.#nodes.get(node?.dataset.key)
    this.versions = new Versions(this.#parts)
    // Before the tools: what was drawn aside was not tapped.
    this.versions.listen(this.list, viewOf)
    this.tools = new MessageTools(this.list, this.#parts, { viewOf, versions: this.versions })
    this.tools.mount()
    this.#stops = [
      store.on("room", (what) => this.#onChange(what)),
      store.on("fresh", (messages) => this.#onFresh(messages)),
      store.on("cast", () => this.#render()),
      store.on("rights", () => this.#render()),
      store.on("providers", () => this.beginning.update()),
      this.tools.unmount,
    ]
    document.addEventListener("visibilitychange", this.#markRead)
    if (room.isReady) this.#onChange("restored")
  }

  unmount() {
    document.removeEventListener("visibilitychange", this.#markRead)
    for (const stop of this.#stops) stop()
    this.#tellReadNow()
    this.scroll.unmount()
  }

  // Actions

  toEnd() {
    this.#unseen = 0
    this.#unreadAfter = null
    this.#window.toEnd()
    this.#render()
    this.scroll.toEnd()
    this.#updateJump()
  }

  // Shows a message, however far back it is, and marks it for a moment.
  async reveal(id) {
    this.#wanted = id
    if (!this.wasRestored) return
    this.#wanted = null
    const { timeline } = this.room
    try {
      // Ids rise with time: what is older than all that is here may still come.
      while (!timeline.byId(id) && timeline.mayHaveOlder && timeline.messages[0]?.id > id)
        this.#window.prepended(await this.paginator.loadOlder(LONG_PAGE))
    } catch (error) {
      return this.#parts.toasts.error(error)
    }
    if (!this.scroller.isConnected) return
    const index = timeline.messages.findIndex((message) => message.id === id)
    if (index < 0) return this.#parts.toasts.show(t("search.gone"))
    this.#window.around(index)
    this.#render()
    const node = this.list.querySelector(`#m-${id}`)
    this.scroll.to(node)
    node.classList.remove("message--found")
    requestAnimationFrame(() => node.classList.add("message--found"))
    this.announcer.announce([timeline.messages[index]])
    this.#updateJump()
  }

  editMyTail() {
    const { tail } = this.room.timeline
    const node = tail && this.#nodes.get(this.room.timeline.keyOf(tail))
    return node ? this.tools.edit(node) : false
  }

  // Private

  #build() {
    this.top = el("div", { class: "timeline__top" })
    this.list = el("div", {
      class: "timeline__list",
      role: "log",
      "aria-live": "off",
      "aria-label": t("timeline.label"),
    })
    this.end = el("div", { class: "timeline__end" })
    this.inner = el("div", { class: "timeline__inner" }, this.top, this.list, this.end)
    this.scroller = el("section", { class: "timeline", tabindex: "-1" }, this.inner)
    this.jump = button(null, { look: "small", class: "jump", hidden: true, click: () => this.toEnd() })
    this.#root.append(this.scroller, this.jump)
    this.beginning = new Beginning(this.top, this.#parts)
    this.card = new RunCard(this.end, this.#parts)
  }

  #onChange(what) {
    // Between leaving a room and leaving the page the next room may already speak.
    if (this.#parts.store.room !== this.room) return
    if (what === "stream") return this.#streamChanged()
    if (what === "typing" || what === "presence") return
    if (what === "restored") this.#restored()
    this.#window.resize(this.room.timeline.messages.length)
    this.#render()
  }

  #restored() {
    const { store, room: actions } = this.#parts
    if (!this.wasRestored) {
      this.wasRestored = true
      const { last_read_seq: read, last_seq: last } = store.openConversation ?? {}
      this.#unreadAfter = read && last > read ? read : null
      this.#window.reset(this.room.timeline.messages.length)
    }
    actions.recallNotice().catch(() => {})
    this.#markRead()
    // Once what came with the room is on the page.
    if (this.#wanted) queueMicrotask(() => this.#wanted && this.reveal(this.#wanted))
  }

  // A chunk touches one node; only the first and the last change the list.
  #streamChanged() {
    const { stream } = this.room
    const node = stream && this.#nodes.get(this.room.keyForStream())
    if (!node || node.row.stream !== stream) return this.#render()
    this.#paintStream()
  }

  #paintStream = oncePerFrame(() => {
    const { stream } = this.room
    const node = stream && this.#nodes.get(this.room.keyForStream())
    if (node) this.scroll.keep(() => node.updateStream())
  })

  #render() {
    this.scroll.keep(() => {
      this.beginning.update()
      reconcile(this.list, this.#rows(), {
        key: (row) => row.key,
        create: (row) => this.#create(row),
        update: (node, row) => this.#nodes.get(row.key)?.update(row),
      })
      this.card.update()
    })
    this.#forgetGone()
    this.tools.settle()
    this.#updateJump()
    this.#markRead()
  }

  #rows() {
    const { outbox, mySeat } = this.#parts.store
    const { start, end } = this.#window
    const seatId = mySeat?.id ?? null
    return rows({
      room: this.room,
      entries: outbox.entries,
      seatId,
      now: this.room.stream?.startedAt,
      start,
      end,
      unreadAfter: this.#unreadAfter,
    })
  }

  #create(row) {
    if (row.kind === "day")
      return el("div", { class: "divider", role: "separator" }, el("span", {}, dayName(row.at)))
    if (row.kind === "unread")
      return el(
        "div",
        { class: "divider divider--unread", role: "separator" },
        el("span", {}, t("timeline.unread")),
      )
    const { store, room: actions } = this.#parts
    const view = new MessageView({
      roster: () => store.openRoster,
      seatId: () => store.mySeat?.id ?? null,
      userName: () => store.user.display_name,
      versions: this.versions,
      onRetry: (clientId) => actions.retrySend(clientId),
      onDiscard: (clientId) => actions.discard(clientId),
    })
    this.#nodes.set(row.key, view)
    return view.node
  }

  #forgetGone() {
    for (const [key, view] of this.#nodes) if (!view.node.isConnected) this.#nodes.delete(key)
  }

  #onFresh(messages) {
    const seatId = this.#parts.store.mySeat?.id
    const others = messages.filter((message) => message.space_membership_id !== seatId)
    this.announcer.announce(others)
    if (!this.scroll.isPinned) this.#unseen += others.length
    if (others.length > 0 && (document.hidden || !this.scroll.isPinned)) this.#markUnread(others[0])
  }

  // The line stands above the first of what came while nobody looked.
  #markUnread({ seq }) {
    const isAllRead = (this.#parts.store.openConversation?.last_read_seq ?? 0) >= seq - 1
    if (isAllRead || this.#unreadAfter === null) this.#unreadAfter = seq - 1
  }

  #onMove({ nearTop, nearBottom, isPinned }) {
    if (isPinned && this.#window.isAtEnd) this.#unseen = 0
    if (nearTop) this.#showOlder()
    if (nearBottom && this.#window.showNewer()) this.#render()
    this.#updateJump()
    this.#markRead()
  }

  async #showOlder() {
    if (this.#window.showOlder()) return this.#render()
    if (this.paginator.loading || !this.room.timeline.mayHaveOlder) return
    try {
      const added = await this.paginator.loadOlder()
      this.#window.prepended(added)
      this.#window.showOlder()
      if (this.scroller.isConnected) this.#render()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }

  #updateJump() {
    const isAway = !this.scroll.isPinned || !this.#window.isAtEnd
    this.jump.hidden = !isAway
    if (!isAway) return
    const label = this.#unseen > 0 ? t("timeline.new", { n: this.#unseen }) : t("timeline.latest")
    if (this.jump.dataset.label === label) return
    this.jump.dataset.label = label
    this.jump.replaceChildren(icon("down"), label)
  }

  // Read is what stood at the end of the page while one looked at it.
  #markRead = () => {
    const { tail } = this.room.timeline
    if (!tail || document.hidden || !this.scroll.isPinned) return
    this.#readSeq = tail.seq
    this.#tellRead()
  }

  #tellReadNow() {
    if (this.#readSeq > 0)
      this.#parts.room.markRead(this.#readSeq, this.room.conversationId).catch(() => {})
  }

  #tellRead = throttle(() => this.#tellReadNow(), READ_EVERY_MS)
}
