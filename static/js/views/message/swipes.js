// The swipes of a message: position, previous, next and new, and who selected the shown one.
//
// On touch devices a horizontal gesture on the message replaces the arrows.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { hasSwipes, isWritten, swipeTarget } from "../../models/message/swipes.js"
import { paths } from "../../router.js"
import { button, iconButton } from "../components/button.js"
import { confirm, openDialog } from "../components/dialog.js"
import { UNDO_MS } from "../components/toast.js"

// The minimum distance of a gesture in pixels, and the ratio of its horizontal to its vertical
// distance.
const DRAWN = 60
const ACROSS = 2

export default class Swipes {
  #parts
  #closeNotice = null

  constructor(parts) {
    this.#parts = parts
  }

  // Returns a value that changes with the bar; null if there is none.
  signature(message) {
    if (!hasSwipes(message)) return null
    const { active, count } = message.swipes
    const targets = [-1, 1].map((delta) => this.#target(message, delta))
    return [active, count, this.#chooser(message), ...targets].join()
  }

  // Returns the bar of a message if it has several swipes.
  bar(message) {
    if (this.signature(message) === null) return null
    const { count, active } = message.swipes
    const place = t("swipe.place", { n: active + 1, count })
    return el(
      "span",
      { class: "swipes", role: "group", "aria-label": t("swipe.label") },
      this.#arrow("left", t("swipe.previous"), message, -1),
      el("span", { class: "swipes__position" }, place),
      this.#arrow("chevron", this.#nextLabel(message), message, 1),
      this.#chosenBy(message),
    )
  }

  // Messages of characters can be regenerated; a message that others have answered is regenerated in a
  // branch.
  mayRegenerate(message) {
    const { openSpace, openRoster } = this.#parts.store
    const author = openRoster.byId(message.space_membership_id)
    const isThere = author?.kind === "character" && author.status !== "removed"
    return message.role === "assistant" && isThere && may(openSpace?.my_role, "generate")
  }

  async regenerate(message) {
    const { conversation, toasts } = this.#parts
    const isNewest = this.#isTail(message) && !this.#isForkPoint(message)
    const place = isNewest ? "here" : await this.#askForPlace()
    if (!place) return
    const options = { inPlace: place === "in_place" }
    await conversation.regenerate(message, options).then(this.#follow, (error) => toasts.error(error))
  }

  // The newest message of a character can be continued while no run is running.
  mayContinue(message) {
    const isThere = this.#isTail(message) && message.visibility === "normal"
    return isThere && !this.#parts.store.openConversation.isRunning && this.mayRegenerate(message)
  }

  async continueMessage(message) {
    const { conversation, toasts } = this.#parts
    await conversation.continueMessage(message).catch((error) => toasts.error(error))
  }

  // Continues the newest message. Returns whether it can be continued.
  continueTail() {
    const { tail } = this.#parts.store.openConversation.timeline
    if (!tail || !this.mayContinue(tail)) return false
    this.continueMessage(tail)
    return true
  }

  async branch(message) {
    await this.openBranch(message).catch((error) => this.#parts.toasts.error(error))
  }

  // As `branch`; throws if it cannot be created.
  async openBranch(message) {
    this.#follow(await this.#parts.conversation.branch(message))
  }

  // Moves by one swipe. Returns whether there is one.
  step(message, delta) {
    const to = this.#target(message, delta)
    if (to === null) return false
    if (to === "new") this.regenerate(message)
    else this.#select(message, to)
    return true
  }

  // Handles touch gestures: on the newest message and those with swipes they select a swipe, if there is one. Otherwise a gesture
  // against the reading direction answers the message: `onReply(message)`. `viewOf(node)` returns the view
  // of a row's node.
  listen(list, viewOf, onReply) {
    let from = null
    list.addEventListener("pointerdown", (event) => {
      from = event.pointerType === "touch" ? event : null
    })
    list.addEventListener("pointerup", (event) => {
      const start = from
      from = null
      const message = start && viewOf(event.target.closest(".message"))?.row.message
      const delta = start ? directionOf(start, event) : 0
      if (!message || delta === 0) return
      // The gesture is not a tap.
      event.stopImmediatePropagation()
      if ((this.#isTail(message) || hasSwipes(message)) && this.step(message, delta)) return
      if (delta < 0) onReply(message)
    })
  }

  // Private

  #isTail(message) {
    return this.#parts.store.openConversation?.timeline.isNewest(message)
  }

  // Selects a swipe. If other messages follow, they may have answered another one: a notice says so.
  async #select(message, to) {
    const { conversation, toasts } = this.#parts
    const from = message.swipes.active
    const show = (position) =>
      conversation.selectSwipe(message, position).then(
        () => true,
        (error) => {
          toasts.error(error)
          return false
        },
      )
    if (!(await show(to)) || this.#isTail(message)) return
    this.#closeNotice?.()
    const action = { label: t("undo"), run: () => show(from) }
    this.#closeNotice = toasts.show(t("swipe.later_messages"), { action, staysMs: UNDO_MS })
  }

  // Asks where a new version of an earlier message is written. Resolves with "branch", "in_place", or
  // a false value.
  async #askForPlace() {
    const mayChange = may(this.#parts.store.openSpace?.my_role, "edit_any")
    return mayChange ? choosePlace() : (await confirmBranch()) && "branch"
  }

  // Whether a branch begins at the message.
  #isForkPoint(message) {
    const { store } = this.#parts
    const conversations = store.conversations(store.openConversationDocument?.space_id)
    return conversations.some((it) => it.forked_from_message_id === message.id)
  }

  // Returns the name of the member that selected the shown swipe, or null.
  #chooser(message) {
    return this.#parts.store.openRoster.nameOf(message.swipes.chosen_by)
  }

  #chosenBy(message) {
    const name = this.#chooser(message)
    return name && el("span", { class: "swipes__chooser" }, t("swipe.chosen_by", { name }))
  }

  #maySwitch(message) {
    const { myMembership, openSpace } = this.#parts.store
    const isMine = message.space_membership_id === myMembership?.id && myMembership?.participation !== "observer"
    return isMine || may(openSpace?.my_role, "generate")
  }

  #target(message, delta) {
    const { openConversation } = this.#parts.store
    if (isWritten(message, openConversation)) return null
    const to = swipeTarget(message, delta)
    if (to === "new") return this.mayRegenerate(message) && !openConversation.isRunning ? to : null
    return this.#maySwitch(message) ? to : null
  }

  #nextLabel(message) {
    return swipeTarget(message, 1) === "new" ? t("swipe.new") : t("swipe.next")
  }

  #arrow(name, label, message, delta) {
    return iconButton(name, label, {
      look: "small",
      "data-id": `swipe-${delta}`,
      disabled: this.#target(message, delta) === null,
      click: () => this.step(message, delta),
    })
  }

  // Opens the conversation of the result if it is another one.
  #follow = ({ conversationId, job }) => {
    const { jobs, router, store } = this.#parts
    if (job) return jobs.follow(job)
    if (store.openConversation?.conversationId !== conversationId) router.go(paths.conversation(conversationId))
  }
}

function confirmBranch() {
  return confirm({
    title: t("regenerate.title"),
    text: t("regenerate.text"),
    action: t("regenerate.action"),
    look: "primary",
  })
}

function choosePlace() {
  return openDialog({
    title: t("regenerate.title"),
    content: (close) => [
      el("p", { class: "dialog__lead" }, t("regenerate.text")),
      el("p", { class: "dialog__lead" }, t("regenerate.in_place_text")),
      el(
        "div",
        { class: "form__actions" },
        button(t("cancel"), { look: "quiet", autofocus: true, click: () => close() }),
        button(t("regenerate.in_place"), { click: () => close("in_place") }),
        button(t("regenerate.action"), { look: "primary", click: () => close("branch") }),
      ),
    ],
  })
}

// The next swipe is in reading direction.
function directionOf(from, to) {
  const x = to.clientX - from.clientX
  const y = to.clientY - from.clientY
  if (Math.abs(x) < DRAWN || Math.abs(x) < Math.abs(y) * ACROSS) return 0
  const isRtl = getComputedStyle(to.target).direction === "rtl"
  return x < 0 !== isRtl ? 1 : -1
}
