// The timeline: rows in order, older and newer pages on demand, pinned to the end, new messages
// announced.
//
// Its role is "log", but it is not a live region, because streamed text changes many times a second.
// The announcer reads each finished message once.
import { el, icon, reconcile } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { dayName } from "../../base/time.js"
import { oncePerFrame, throttle } from "../../base/timing.js"
import { CONVERSATION_EVENTS } from "../../models/conversation/open_conversation.js"
import MessageWindow from "../../models/conversation/message_window.js"
import Paginator from "../../models/conversation/paginator.js"
import { rows } from "../../models/conversation/timeline_rows.js"
import Announcer from "../shell/announcer.js"
import ConversationIntro from "./conversation_intro.js"
import { button } from "../components/button.js"
import MessageView from "../message/message.js"
import MessageTools from "../message/message_tools.js"
import { openPictureDialog, openSummariesDialog } from "../on_demand.js"
import RunCard from "../message/run_card.js"
import Scroll from "./scroll.js"
import Swipes from "../message/swipes.js"

const READ_EVERY_MS = 1500

export default class TimelineView {
  #root
  #parts
  #nodes = new Map()
  #window = new MessageWindow()
  #nNew = 0
  #unreadAfter = null
  #readSeq = 0
  #pendingReveal = null
  #jumps = 0
  #stops = []

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    const { store, conversation: actions, announcer } = this.#parts
    const { openConversation } = store
    this.openConversation = openConversation
    this.#build()
    const { timeline, conversationId } = openConversation
    this.paginator = new Paginator(timeline, (cursor) => actions.page(conversationId, cursor))
    this.scroll = new Scroll(this.scroller, {
      onMove: (place) => this.#onMove(place),
      isWhole: () => this.#isAtEnd,
    })
    this.scroll.mount(this.inner)
    this.announcer = new Announcer(announcer)
    const viewOf = (node) => this.#nodes.get(node?.dataset.key)
    this.swipes = new Swipes(this.#parts)
    // Registered before the tools, because a swipe gesture is not a tap.
    this.tools = new MessageTools(this.list, this.#parts, { viewOf, swipes: this.swipes })
    this.swipes.listen(this.list, viewOf, (message) => this.tools.reply(message))
    this.tools.mount()
    this.#stops = [
      store.onAny(CONVERSATION_EVENTS, (name) => this.#onChange(name)),
      store.on("new_messages", (messages) => this.#onFresh(messages)),
      store.on("roster", () => this.#render()),
      store.on("rights", () => this.#render()),
      store.on("translations", () => this.#render()),
      store.on("providers", () => this.intro.update()),
      this.tools.unmount,
    ]
    document.addEventListener("visibilitychange", this.#markRead)
    if (openConversation.isReady) this.#onChange("restored")
  }

  unmount() {
    document.removeEventListener("visibilitychange", this.#markRead)
    for (const stop of this.#stops) stop()
    this.#sendReadNow()
    this.scroll.unmount()
  }

  // Actions

  toEnd() {
    // The button hides itself: the focus moves to the newest message.
    const isByButton = document.activeElement === this.jump
    this.#jumps += 1
    this.#nNew = 0
    this.#unreadAfter = null
    this.#showNewest()
    this.#render()
    this.scroll.toEnd()
    this.#updateJump()
    if (isByButton) this.list.querySelector(".message[tabindex='0']")?.focus({ preventScroll: true })
  }

  // Scrolls to a message, loads it if necessary, and highlights it.
  async reveal(id) {
    this.#pendingReveal = id
    if (!this.wasRestored) return
    this.#pendingReveal = null
    const jump = ++this.#jumps
    try {
      await this.#loadAround(id, () => jump === this.#jumps && this.scroller.isConnected)
    } catch (error) {
      return error.status === 404
        ? this.#parts.toasts.show(t("search.gone"))
        : this.#parts.toasts.error(error)
    }
    if (jump !== this.#jumps || !this.scroller.isConnected) return
    const { messages } = this.openConversation.timeline
    const index = messages.findIndex((message) => message.id === id)
    if (index < 0) return this.#parts.toasts.show(t("search.gone"))
    this.#window.around(index)
    this.#render()
    const node = this.list.querySelector(`#m-${id}`)
    this.scroll.to(node)
    node.focus({ preventScroll: true })
    node.classList.remove("message--found")
    requestAnimationFrame(() => node.classList.add("message--found"))
    this.announcer.announce([messages[index]])
    this.#updateJump()
  }

  // Edits the newest loaded message of the user, also if others have written since. Returns whether there
  // is one.
  editMyLast() {
    if (!this.#isAtEnd) this.toEnd()
    const { timeline } = this.openConversation
    const myMembershipId = this.#parts.store.myMembership?.id ?? null
    const index = timeline.messages.findLastIndex((it) => it.space_membership_id === myMembershipId)
    if (index < 0) return false
    if (index < this.#window.start) {
      this.#window.around(index)
      this.#render()
    }
    const view = this.#nodes.get(timeline.keyOf(timeline.messages[index]))
    return view ? this.tools.edit(view) : false
  }

  // Private

  get #isAtEnd() {
    return this.#window.isAtEnd && !this.openConversation.timeline.mayHaveNewer
  }

  // Shows the newest messages.
  #showNewest() {
    const { timeline } = this.openConversation
    timeline.showNewest()
    this.#window.reset(timeline.messages.length)
  }

  // Loads the page around a message unless it is already loaded.
  async #loadAround(id, isWanted) {
    const { timeline, conversationId } = this.openConversation
    const isShown = () => timeline.messages.some((message) => message.id === id)
    if (isShown()) return
    if (timeline.byId(id)) return this.#showNewest()
    const { data } = await this.#parts.conversation.page(conversationId, { around: id })
    if (!isWanted() || isShown()) return
    timeline.jump(data)
    this.#window.reset(timeline.messages.length)
  }

  #build() {
    this.top = el("div", { class: "timeline__top" })
    this.list = el("div", {
      class: "timeline__list",
      role: "log",
      "aria-live": "off",
      "aria-label": t("timeline.label"),
    })
    this.end = el("div", { class: "timeline__end" })
    this.more = el("p", { class: "timeline__loading", hidden: true }, t("timeline.loading_newer"))
    this.inner = el("div", { class: "timeline__inner" }, this.top, this.list, this.more, this.end)
    this.scroller = el("section", { class: "timeline", tabindex: "-1" }, this.inner)
    this.jump = button(null, { look: "small", class: "jump", hidden: true, click: () => this.toEnd() })
    this.#root.append(this.scroller, this.jump)
    this.intro = new ConversationIntro(this.top, this.#parts)
    this.card = new RunCard(this.end, this.#parts)
  }

  #onChange(name) {
    if (name === "stream") return this.#streamChanged()
    if (name === "typing" || name === "presence" || name === "reply") return
    if (name === "restored") this.#restored()
    this.#window.resize(this.openConversation.timeline.messages.length)
    this.#render()
  }

  #restored() {
    const { store, conversation: actions } = this.#parts
    if (!this.wasRestored) {
      this.wasRestored = true
      const { last_read_seq: read, last_seq: last } = store.openConversationDocument ?? {}
      this.#unreadAfter = read && last > read ? read : null
      this.#window.reset(this.openConversation.timeline.messages.length)
    }
    actions.loadRunNotice().catch(() => {})
    this.#markRead()
    // Reveals a message when the snapshot is rendered.
    if (this.#pendingReveal) queueMicrotask(() => this.#pendingReveal && this.reveal(this.#pendingReveal))
  }

  // A chunk updates one node; only the first and the last one change the list.
  #streamChanged() {
    const { stream } = this.openConversation
    const node = stream && this.#nodes.get(this.openConversation.keyForStream())
    if (!node || node.row.stream !== stream) return this.#render()
    this.#paintStream()
  }

  #paintStream = oncePerFrame(() => {
    const { stream } = this.openConversation
    const node = stream && this.#nodes.get(this.openConversation.keyForStream())
    if (node) this.scroll.keep(() => node.updateStream())
  })

  #render() {
    this.scroll.keep(() => {
      this.intro.update()
      reconcile(this.list, this.#rows(), {
        key: (row) => row.key,
        create: (row) => this.#create(row),
        update: (node, row) => this.#nodes.get(row.key)?.update(row),
      })
      this.card.update()
      const { mayHaveNewer } = this.openConversation.timeline
      this.more.hidden = !mayHaveNewer
      this.end.hidden = mayHaveNewer
    })
    this.#removeDetached()
    this.tools.settle()
    this.#updateJump()
    this.#markRead()
    this.#wantTranslations()
  }

  // Requests the translations of what is shown, if the user wants all.
  #wantTranslations() {
    const { start, end } = this.#window
    this.#parts.translations.want(this.openConversation.timeline.messages.slice(start, end))
  }

  #rows() {
    const { outbox, myMembership } = this.#parts.store
    const { start, end } = this.#window
    const myMembershipId = myMembership?.id ?? null
    return rows({
      conversation: this.openConversation,
      entries: outbox.entries,
      myMembershipId,
      now: this.openConversation.stream?.startedAt,
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
    if (row.kind === "summary") return this.#summaryEnd()
    const { store, conversation: actions } = this.#parts
    const view = new MessageView({
      roster: () => store.openRoster,
      myMembershipId: () => store.myMembership?.id ?? null,
      userName: () => store.user.display_name,
      swipes: this.swipes,
      translations: this.#parts.translations,
      onReact: (message, emoji) => this.tools.react(message, emoji),
      mayReact: () => this.tools.mayPost(),
      onReveal: (id) => this.reveal(id),
      onOpenPicture: (attachments, index) => openPictureDialog(this.#parts, attachments, index),
      onSendWithoutReply: (clientId) => actions.sendWithoutReply(clientId),
      onRetry: (clientId) => actions.retrySend(clientId),
      onDiscard: (clientId) => actions.discard(clientId),
    })
    this.#nodes.set(row.key, view)
    return view.node
  }

  // Returns the row that shows where the summary ends, with a link to the summary.
  #summaryEnd() {
    const click = () => openSummariesDialog(this.#parts, this.#parts.store.openConversationDocument)
    const link = button(t("timeline.summarized"), { look: "quiet small", class: "divider__action", click })
    return el("div", { class: "divider divider--summary" }, link)
  }

  #removeDetached() {
    for (const [key, view] of this.#nodes) if (!view.node.isConnected) this.#nodes.delete(key)
  }

  #onFresh(messages) {
    const myMembershipId = this.#parts.store.myMembership?.id
    const others = messages.filter((message) => message.space_membership_id !== myMembershipId)
    this.announcer.announce(others)
    if (!this.scroll.isPinned) this.#nNew += others.length
    if (others.length > 0 && (document.hidden || !this.scroll.isPinned)) this.#markUnread(others[0])
  }

  // Places the unread mark above the first message that arrived unseen.
  #markUnread({ seq }) {
    const isAllRead = (this.#parts.store.openConversationDocument?.last_read_seq ?? 0) >= seq - 1
    if (isAllRead || this.#unreadAfter === null) this.#unreadAfter = seq - 1
  }

  #onMove({ nearTop, nearBottom, isPinned }) {
    if (isPinned) this.#nNew = 0
    if (nearTop) this.#showOlder()
    if (nearBottom) this.#showNewer()
    this.#updateJump()
    this.#markRead()
  }

  async #showOlder() {
    if (this.#window.showOlder()) return this.#render()
    if (this.paginator.loading || !this.openConversation.timeline.mayHaveOlder) return
    await this.#grow(async () => {
      this.#window.prepended(await this.paginator.loadOlder())
      this.#window.showOlder()
    })
  }

  async #showNewer() {
    if (this.#window.showNewer()) return this.#render()
    const { timeline } = this.openConversation
    if (this.paginator.loading || !timeline.mayHaveNewer) return
    await this.#grow(async () => {
      await this.paginator.loadNewer()
      this.#window.appended(timeline.messages.length)
      this.#window.showNewer()
    })
  }

  async #grow(load) {
    try {
      await load()
      if (this.scroller.isConnected) this.#render()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }

  #updateJump() {
    const isAway = !this.scroll.isPinned || !this.#isAtEnd
    this.jump.hidden = !isAway
    if (!isAway) return
    const label = this.#nNew > 0 ? t("timeline.new", { n: this.#nNew }) : t("timeline.latest")
    if (this.jump.dataset.label === label) return
    this.jump.dataset.label = label
    this.jump.replaceChildren(icon("down"), label)
  }

  // Marks the newest message as read if it is visible.
  #markRead = () => {
    const { newestSeq } = this.openConversation.timeline
    if (newestSeq === 0 || document.hidden || !this.scroll.isPinned || !this.#isAtEnd) return
    // Whispers of others may follow: they count, but they are not shown.
    this.#readSeq = Math.max(newestSeq, this.#parts.store.openConversationDocument?.last_seq ?? 0)
    this.#sendRead()
  }

  #sendReadNow() {
    if (this.#readSeq > 0)
      this.#parts.conversation.markRead(this.#readSeq, this.openConversation.conversationId).catch(() => {})
  }

  #sendRead = throttle(() => this.#sendReadNow(), READ_EVERY_MS)
}
