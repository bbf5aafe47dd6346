// The bar above the composer: current and next speaker, the controls of the queue, or, if no reply is
// queued, the characters to trigger.
import { el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { CONVERSATION_EVENTS } from "../../models/conversation/open_conversation.js"
import { describeAutoMode } from "../../models/queue/auto_mode.js"
import { describe, maySkip } from "../../models/queue/queue.js"
import { may } from "../../models/members/rights.js"
import { autoSwitch } from "./auto_switch.js"
import { avatar } from "../components/avatar.js"
import { button, iconButton } from "../components/button.js"
import Countdown from "../components/countdown.js"
import { slotStrip } from "./queue_slots.js"
import QueueText from "./queue_text.js"
import { inheritedAudience, triggerLabel, visibleTo } from "../whispers/reply_audience.js"
import { openNextSpeakerDialog, openRoundDialog } from "../on_demand.js"

const EVENTS = CONVERSATION_EVENTS.filter((name) => name !== "typing" && name !== "presence")

export default class QueueBar {
  #root
  #parts
  #queueText
  #countdown
  // A live region must stay in the document; only its content is replaced.
  #text = el("div", { class: "queue__text", role: "status" })
  #slots = el("div", { class: "queue__round" })
  #actions = el("div", { class: "queue__actions" })
  #box
  #signature = null
  // The newest message, if it is a whisper that is to be answered publicly.
  #publicAfter = null
  #rules = null
  #stops = []

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
    this.#countdown = new Countdown(() => parts.store.serverClock.now())
    this.#queueText = new QueueText(parts, this.#countdown.node)
    this.#box = el("div", { class: "queue__box" }, this.#text, this.#slots, this.#actions)
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    this.#root.append(this.#box)
    this.#stops = [
      store.onAny(EVENTS, () => this.#update()),
      store.on("roster", () => this.#update()),
      store.on("spaces", () => {
        this.#reloadOnNewRules()
        this.#update()
      }),
    ]
    this.#reloadOnNewRules()
    this.#update()
  }

  unmount() {
    this.#countdown.stop()
    for (const stop of this.#stops) stop()
  }

  // Private

  // Reads the turns left again when the settings of auto mode have changed.
  #reloadOnNewRules() {
    const { openSpace: space, openConversation } = this.#parts.store
    const rules = space && openConversation && `${space.auto_mode_enabled} ${space.auto_mode_max_turns}`
    const isNew = this.#rules !== null && this.#rules !== rules
    this.#rules = rules
    if (isNew && rules) this.#parts.conversation.readQueue().catch(() => {})
  }

  #update() {
    const { store } = this.#parts
    if (!store.openConversation) return
    const view = this.#view()
    const signature = JSON.stringify(view)
    if (signature === this.#signature) return
    this.#signature = signature
    this.#box.dataset.state = view.facts.state
    const hasManySlots = view.facts.slots.length > 1
    this.#box.dataset.slots = hasManySlots ? "many" : "one"
    const { waitsFor } = view.facts
    this.#box.dataset.turn = waitsFor !== null && waitsFor === view.myId ? "own" : "other"
    const focused = this.#box.contains(document.activeElement) ? document.activeElement.dataset.act : null
    replace(this.#text, this.#queueText.build(view))
    replace(this.#slots, hasManySlots && slotStrip(view.facts.slots, view.members))
    replace(this.#actions, this.#buttons(view))
    const { startsAt, deadline } = view.facts
    this.#countdown.show(startsAt ?? deadline, { isEnd: deadline !== null })
    if (focused)
      (this.#box.querySelector(`[data-act="${focused}"]`) ?? this.#box.querySelector("button"))?.focus()
  }

  // Returns everything that the bar shows.
  #view() {
    const { store } = this.#parts
    const { openConversation, openSpace: space, openConversationDocument: conversation, openRoster: roster } = store
    const facts = describe(openConversation)
    const inherited = facts.state === "idle" && may(space?.my_role, "generate") ? inheritedAudience(store) : null
    const isPublic = inherited !== null && this.#publicAfter === openConversation.timeline.tail.id
    const turnsLeft = openConversation.queue.turnsLeft ?? conversation?.auto_mode_turns_left
    return {
      facts,
      inherited,
      isPublic,
      repliesTo: inherited && visibleTo(store, isPublic ? null : inherited),
      role: space?.my_role ?? null,
      myId: store.myMembership?.id ?? null,
      order: space?.reply_order ?? null,
      auto: describeAutoMode({ space, turnsLeft, state: facts.state }),
      tailKind: roster.byId(openConversation.timeline.tail?.space_membership_id)?.kind ?? null,
      dropped: openConversation.dropped,
      members: [...roster.characters, ...roster.people].map(
        ({ id, display_name: name, avatar_url: url, participation, kind }) => ({
          id,
          name,
          url,
          isMuted: participation === "muted",
          isSpeaker: kind === "character" && participation !== "observer",
        }),
      ),
    }
  }

  #buttons(view) {
    const { facts, members, role, auto } = view
    const isIdle = facts.state === "idle"
    return [
      view.inherited && this.#publicButton(view.isPublic),
      isIdle && may(role, "generate") && this.#speakers(members.filter((member) => member.isSpeaker), view),
      this.#acts(view).map((name) => this.#control(name)),
      facts.hasRound && this.#roundButton(),
      members.some((member) => member.isSpeaker) && this.#oddsButton(),
      autoSwitch(this.#parts, auto, may(role, "settings")),
    ]
  }

  // The controls that the user may use; a guest may skip only their own turn.
  #acts({ facts, role, myId }) {
    const mayControl = may(role, "control")
    const rights = { membershipId: myId, mayControl, mayModerate: may(role, "people") }
    return facts.acts.filter((name) => (name === "skip" ? maySkip(facts, rights) : mayControl))
  }

  // Whether the reply to a whisper will be a whisper.
  #publicButton(isPublic) {
    return button(t("whisper.reply_publicly"), {
      look: "small quiet",
      "aria-pressed": String(isPublic),
      "data-act": "public",
      click: () => {
        this.#publicAfter = isPublic ? null : this.#parts.store.openConversation.timeline.tail.id
        this.#update()
      },
    })
  }

  #speakers(speakers, { inherited, isPublic }) {
    const audience = isPublic ? null : inherited
    if (speakers.length === 0) return null
    return el(
      "div",
      { class: "queue__choice", role: "group", "aria-label": t("queue.trigger_reply") },
      el(
        "div",
        { class: "queue__speakers" },
        speakers.map((speaker) => this.#speaker(speaker, audience, isPublic)),
      ),
      button(el("span", { class: "button__label" }, t("queue.anyone")), {
        look: "small quiet",
        icon: "spark",
        title: t("queue.generate"),
        "aria-label": t("queue.generate"),
        "data-act": "generate",
        click: (event) => this.#act(event, () => this.#generate(null, isPublic)),
      }),
    )
  }

  #generate(speakerId, isPublic) {
    return this.#parts.conversation.generate(speakerId, isPublic ? null : undefined)
  }

  #speaker(speaker, audience, isPublic) {
    const { id, name, url, isMuted } = speaker
    const label = triggerLabel(this.#parts.store, speaker, audience)
    const click = (event) => this.#act(event, () => this.#generate(id, isPublic))
    return el(
      "button",
      {
        class: `queue__speaker ${isMuted ? "queue__speaker--muted" : ""}`,
        type: "button",
        "data-act": `speak-${id}`,
        "aria-label": label,
        title: label,
        on: { click },
      },
      avatar({ name, url, size: "small" }),
      audience?.includes(id) && el("span", { class: "slot__mark" }, icon("lock")),
    )
  }

  #control(name) {
    const { conversation } = this.#parts
    const [icon, label, act] = {
      pause: ["pause", t("queue.pause"), () => conversation.pause()],
      resume: ["play", t("queue.resume"), () => conversation.resume()],
      skip: ["skip", t("skip"), () => conversation.skip()],
      retry: ["retry", t("retry"), () => conversation.retry()],
      stop: ["stop", t("composer.stop"), () => conversation.stop()],
    }[name]
    const click = (event) => this.#act(event, act)
    return button(el("span", { class: "button__label" }, label), {
      look: "small quiet",
      icon,
      title: label,
      "aria-label": label,
      "data-act": name,
      click,
    })
  }

  // Visible to all; only some can change the round.
  #roundButton() {
    return iconButton("list", t("queue.round"), {
      look: "small",
      "data-act": "round",
      click: () => openRoundDialog(this.#parts),
    })
  }

  #oddsButton() {
    return iconButton("speak", t("queue.odds"), {
      look: "small",
      "data-act": "odds",
      click: () => openNextSpeakerDialog(this.#parts),
    })
  }

  async #act({ currentTarget }, act) {
    currentTarget.disabled = true
    try {
      await act()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
    currentTarget.disabled = false
  }
}
