// The swipes of the newest message: position, previous, next and new.
//
// On touch devices a horizontal gesture on the message replaces the arrows.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { swipeTarget } from "../../models/message/swipes.js"
import { paths } from "../../router.js"
import { iconButton } from "../components/button.js"
import { confirm } from "../components/dialog.js"

// The minimum distance of a gesture in pixels, and the ratio of its horizontal to its vertical
// distance.
const DRAWN = 60
const ACROSS = 2

export default class Swipes {
  #parts

  constructor(parts) {
    this.#parts = parts
  }

  // Returns a value that changes with the bar; null if there is none.
  signature(message) {
    const { swipes } = message
    if (!this.#isTail(message) || !(swipes?.count > 1)) return null
    const rights = [this.#maySwitch(message), this.mayRegenerate(message), this.#isForkPoint(message)]
    return [swipes.active, swipes.count, this.#isBusy, ...rights].join()
  }

  // Returns the bar of the newest message if it has several swipes.
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
    const needsBranch = !this.#isTail(message) || this.#isForkPoint(message)
    if (needsBranch && !(await confirmBranch())) return
    await conversation.regenerate(message).then(this.#follow, (error) => toasts.error(error))
  }

  async branch(message) {
    const { conversation, toasts } = this.#parts
    await conversation.branch(message).then(this.#follow, (error) => toasts.error(error))
  }

  // Moves by one swipe. Returns whether there is one.
  step(message, delta) {
    const to = this.#target(message, delta)
    if (to === null) return false
    if (to === "new") this.regenerate(message)
    else this.#parts.conversation.selectSwipe(message, to).catch((error) => this.#parts.toasts.error(error))
    return true
  }

  // Handles touch gestures on the newest message. `viewOf(node)` returns the view of a row's node.
  listen(list, viewOf) {
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
      if (this.#isTail(message)) this.step(message, delta)
    })
  }

  // Private

  #isTail(message) {
    return this.#parts.store.openConversation?.timeline.tail?.id === message.id
  }

  // Whether a branch begins at the message; its text cannot be changed then.
  #isForkPoint(message) {
    const { store } = this.#parts
    const conversations = store.conversations(store.openConversationDocument?.space_id)
    return conversations.some((it) => it.forked_from_message_id === message.id)
  }

  get #isBusy() {
    return this.#parts.store.openConversation.isRunning
  }

  #maySwitch(message) {
    const { myMembership, openSpace } = this.#parts.store
    const isMine = message.space_membership_id === myMembership?.id && myMembership?.participation !== "observer"
    return isMine || may(openSpace?.my_role, "generate")
  }

  #target(message, delta) {
    if (this.#isBusy) return null
    const to = swipeTarget(message, delta)
    if (to === "new") return this.mayRegenerate(message) ? to : null
    return this.#maySwitch(message) && !this.#isForkPoint(message) ? to : null
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

// The next swipe is in reading direction.
function directionOf(from, to) {
  const x = to.clientX - from.clientX
  const y = to.clientY - from.clientY
  if (Math.abs(x) < DRAWN || Math.abs(x) < Math.abs(y) * ACROSS) return 0
  const isRtl = getComputedStyle(to.target).direction === "rtl"
  return x < 0 !== isRtl ? 1 : -1
}
