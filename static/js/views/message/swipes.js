// The texts of the newest message: which of how many is shown, the ones beside it, and another one.
//
// A finger draws the message aside in place of pressing an arrow.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { swipeTarget } from "../../models/message/swipes.js"
import { paths } from "../../router.js"
import { iconButton } from "../components/buttons.js"
import { confirm } from "../components/dialog.js"

// How far a finger must go to mean it, in pixels, and how much more across than along.
const DRAWN = 60
const ACROSS = 2

export default class Swipes {
  #parts

  constructor(parts) {
    this.#parts = parts
  }

  // What a row must know to show the same bar: null when it shows none.
  signature(message) {
    const { swipes } = message
    if (!this.#isTail(message) || !(swipes?.count > 1)) return null
    const rights = [this.#maySwitch(message), this.mayRegenerate(message), this.#isForkPoint(message)]
    return [swipes.active, swipes.count, this.#isBusy, ...rights].join()
  }

  // The bar of a message that has several texts and is the newest.
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

  // Any text of an AI may be written anew; where others have built on it, in a branch.
  mayRegenerate(message) {
    const { openSpace, openRoster } = this.#parts.store
    const author = openRoster.byId(message.space_membership_id)
    const isThere = author?.kind === "character" && author.status !== "removed"
    return message.role === "assistant" && isThere && may(openSpace?.my_role, "generate")
  }

  async regenerate(message) {
    const { conversation, toasts } = this.#parts
    const takesBranch = !this.#isTail(message) || this.#isForkPoint(message)
    if (takesBranch && !(await confirmBranch())) return
    await conversation.regenerate(message).then(this.#follow, (error) => toasts.error(error))
  }

  async branch(message) {
    const { conversation, toasts } = this.#parts
    await conversation.branch(message).then(this.#follow, (error) => toasts.error(error))
  }

  // One text on, or back. Returns whether there is anything that way.
  step(message, delta) {
    const to = this.#target(message, delta)
    if (to === null) return false
    if (to === "new") this.regenerate(message)
    else this.#parts.conversation.selectSwipe(message, to).catch((error) => this.#parts.toasts.error(error))
    return true
  }

  // Draws on the newest message, by touch, are steps. `viewOf(node)` gives the view of a row's node.
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
      // It was no tap.
      event.stopImmediatePropagation()
      if (this.#isTail(message)) this.step(message, delta)
    })
  }

  // Private

  #isTail(message) {
    return this.#parts.store.openConversation?.timeline.tail?.id === message.id
  }

  // A branch hangs on it: its text stays as it is.
  #isForkPoint(message) {
    const { store } = this.#parts
    const places = store.conversations(store.openConversationDocument?.space_id)
    return places.some((it) => it.forked_from_message_id === message.id)
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

  // Goes where it goes on, if that is elsewhere.
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

// To the side on which one reads on: the next text comes from there.
function directionOf(from, to) {
  const x = to.clientX - from.clientX
  const y = to.clientY - from.clientY
  if (Math.abs(x) < DRAWN || Math.abs(x) < Math.abs(y) * ACROSS) return 0
  const isRtl = getComputedStyle(to.target).direction === "rtl"
  return x < 0 !== isRtl ? 1 : -1
}
