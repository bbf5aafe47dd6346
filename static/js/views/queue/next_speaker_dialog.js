// Who speaks next: the decided turns, and how likely each character is after them. It is loaded when the
// dialog opens, and again whenever the conversation or the settings change.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { percent } from "../../base/numbers.js"
import { CONVERSATION_EVENTS } from "../../models/conversation/open_conversation.js"
import { likely } from "../../models/queue/next_speaker.js"
import { avatar } from "../components/avatar.js"
import { openDialog } from "../components/dialog.js"
import { explain, explainSpeakerReason } from "../components/error_messages.js"

const EVENTS = CONVERSATION_EVENTS.filter((name) => name !== "typing" && name !== "presence")

export async function openNextSpeakerDialog(parts) {
  const body = el("div", { class: "odds", "aria-busy": "true" }, el("p", { class: "field__hint" }, t("loading")))
  const { store } = parts
  const load = () => show(parts, body)
  const stops = [store.onAny(EVENTS, load), store.on("roster", load), store.on("spaces", load)]
  load()
  await openDialog({ title: t("odds.title"), content: () => body })
  for (const stop of stops) stop()
}

async function show(parts, body) {
  try {
    const preview = await parts.conversation.nextSpeaker()
    // A newer answer replaces an older one, because both show the present state.
    replace(body, decided(parts, preview), odds(parts, preview))
  } catch (error) {
    replace(body, el("p", { class: "field__hint" }, explain(error)))
  }
  body.removeAttribute("aria-busy")
}

function decided(parts, { decided: turns }) {
  if (turns.length === 0) return null
  const rows = turns.map(({ membership_id: id, because }) => row(parts, id, reason(because)))
  return [el("h3", { class: "panel__title" }, t("odds.decided")), el("ol", { class: "odds__list" }, rows)]
}

function odds(parts, preview) {
  const rows = likely(preview).map(({ membership_id: id, probability, because }) =>
    row(parts, id, reason(because), probability),
  )
  const none = el("p", { class: "field__hint" }, t("odds.none"))
  return [
    el("h3", { class: "panel__title" }, t(`odds.after_${preview.trigger}`)),
    rows.length > 0 ? el("ul", { class: "odds__list" }, rows) : none,
  ]
}

function reason(because) {
  return because ? explainSpeakerReason(because) : null
}

function row({ store }, id, because, probability = null) {
  const member = store.openRoster.byId(id)
  const name = member?.display_name ?? t("message.unknown_author")
  return el(
    "li",
    { class: "odds__row" },
    avatar({ name, url: member?.avatar_url ?? null, size: "small" }),
    el("span", { class: "odds__name" }, bdi(name), because && el("span", { class: "field__hint" }, because)),
    probability !== null && el("span", { class: "odds__share" }, percent(probability)),
  )
}
