// The slots of a round in order: an avatar each, with its state and reason.
import { el, icon } from "../../base/dom.js"
import { has, t } from "../../base/i18n.js"
import { DIRECTOR } from "../../models/queue/queue.js"
import { avatar } from "../components/avatar.js"
import { explainSpeakerReason } from "../components/error_messages.js"

const MARKS = { spoken: "check", skipped: "skip", failed: "alert" }

// `slots` is the list of `describe` in models/queue/queue.js; `members` are `{ id, name, url }`.
export function slotStrip(slots, members) {
  return el(
    "ol",
    { class: "queue__slots", "aria-label": t("round.label") },
    slots.map((slot) => {
      const member = members.find(({ id }) => id === slot.membershipId)
      const isUndecided = slot.membershipId === DIRECTOR
      const name = isUndecided ? t("director.name") : (member?.name ?? t("message.unknown_author"))
      const text = t("slot.label", { name, text: slotNote(slot) })
      return el(
        "li",
        { class: `slot slot--${slot.state}`, title: text, "data-slot": slot.state },
        avatar({ name, url: member?.url, size: "small" }),
        MARKS[slot.state] && el("span", { class: "slot__mark" }, icon(MARKS[slot.state])),
        el("span", { class: "visually-hidden" }, text),
      )
    }),
  )
}

// Returns the state of a slot and its reason.
export function slotNote({ state, reason, skipReason }) {
  const text = t(`slot.${state}`)
  const explanation = state === "skipped" ? explainSkip(skipReason) : reason && explainSpeakerReason(reason)
  return explanation ? t("slot.with_reason", { text, reason: explanation }) : text
}

// Explains why a slot was skipped.
function explainSkip(reason) {
  return has(`skip_reason.${reason}`) ? t(`skip_reason.${reason}`) : null
}
