// The text of the queue bar: the current and next speakers and the reasons.
import { bdi, el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { list, listParts } from "../../base/time.js"
import { may } from "../../models/members/rights.js"
import { DIRECTOR } from "../../models/queue/queue.js"
import { explainSpeakerReason } from "../components/error_messages.js"

export default class QueueText {
  #parts
  #countdown

  // `countdown` is the node after the next speaker.
  constructor(parts, countdown) {
    this.#parts = parts
    this.#countdown = countdown
  }

  // Actions

  build(view) {
    return view.facts.state === "idle" ? this.#hint(view) : this.#now(view)
  }

  // Private

  #name(id) {
    if (id === DIRECTOR) return t("director.name")
    return this.#parts.store.openRoster.nameOf(id) ?? t("message.unknown_author")
  }

  // No reply is queued

  #hint(view) {
    return [view.repliesTo ?? this.#whoseTurn(view), this.#autoRests(view.auto)]
      .filter(Boolean)
      .map((text) => el("span", { class: "queue__hint" }, text))
  }

  // The hint to choose a speaker is shown only to those who can.
  #whoseTurn({ members, tailKind, role, order, auto }) {
    const mayChoose = may(role, "generate")
    if (!members.some((member) => member.isSpeaker)) return t("queue.no_characters")
    if (tailKind === "human") return mayChoose ? t("queue.no_reply_queued") : t("queue.no_reply_queued_yet")
    if (auto.status === "ready") return null
    return order === "manual" && mayChoose ? t("queue.your_turn_manual") : t("queue.your_turn")
  }

  #autoRests({ status, most }) {
    if (status === "ready") return t("auto.ready")
    if (status === "manual") return t("auto.manual")
    return status === "used_up" ? t("auto.used_up", { n: most }) : null
  }

  // A reply is queued or running

  #now({ facts, dropped, myId }) {
    const { state, reason, next, upcoming } = facts
    const isBlocked = state === "paused" || state === "failed"
    const coming = state === "paused" && !facts.isSpeaking ? [next, ...upcoming].filter(Boolean) : upcoming
    const isPausing = state === "paused" && facts.isSpeaking
    // The slots of the round show the others.
    const after = isPausing ? [] : coming.slice(0, facts.slots.length > 1 ? 1 : coming.length)
    return [
      el(
        "span",
        { class: "queue__now" },
        el("span", { class: `queue__dot queue__dot--${state}` }),
        this.#first(facts, myId),
        this.#countdown,
      ),
      reason && !isBlocked && this.#reasonButton(reason),
      facts.isFinishingFirst && el("span", { class: "queue__hint" }, t("queue.finishing_first")),
      after.length > 0 && el("span", { class: "queue__next" }, t("queue.then"), " ", this.#names(after)),
      isPausing && el("span", { class: "queue__hint" }, t("queue.then_pauses")),
      dropped.length > 0 && el("span", { class: "queue__hint queue__dropped" }, this.#dropped(dropped)),
    ]
  }

  #first({ state, isSpeaking, isPrivate, now, next, waitsFor }, myId) {
    if (isPrivate && isSpeaking) return t("queue.private_writing")
    if (isSpeaking && now === DIRECTOR) return t("queue.director_choosing")
    if (isSpeaking && now) return t("queue.speaking", { name: this.#name(now) })
    if (waitsFor !== null && waitsFor === myId) return t("queue.own_turn")
    if (waitsFor !== null) return t("queue.waiting_for", { name: this.#name(waitsFor) })
    if (state === "paused") return t("queue.paused")
    if (isPrivate) return state === "failed" ? t("queue.private_failed") : t("queue.private_next")
    if (state === "failed") return t("queue.failed", { name: this.#name(next) })
    if (next === DIRECTOR) return t("queue.director_next")
    return next && t("queue.next_alone", { name: this.#name(next) })
  }

  // Members whose slot was dropped by a newer message or request.
  #dropped(ids) {
    const names = ids.map((id) => this.#name(id))
    return t("queue.dropped", { names: list(names) })
  }

  #names(ids) {
    return listParts(ids.map((id) => this.#name(id))).map(({ type, value }) =>
      type === "element" ? bdi(value) : value,
    )
  }

  #reasonButton(reason) {
    const text = explainSpeakerReason(reason)
    return el(
      "button",
      {
        class: "queue__because",
        type: "button",
        "data-act": "because",
        title: text,
        "aria-label": t("queue.reason", { text }),
        on: { click: () => this.#parts.toasts.show(t("queue.reason", { text })) },
      },
      t("queue.show_reason"),
    )
  }
}
