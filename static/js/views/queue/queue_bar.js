// The bar above the field: who speaks, who is next and why, and what one may do about it; or, when
// nobody is due, whom to ask.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { describeAuto } from "../../models/queue/auto_mode.js"
import { describe } from "../../models/queue/queue.js"
import { may } from "../../models/members/rights.js"
import { autoSwitch } from "./auto_switch.js"
import { avatar } from "../components/avatar.js"
import { button, iconButton } from "../components/buttons.js"
import Countdown from "../components/countdown.js"
import { slotStrip } from "./queue_slots.js"
import QueueWords from "./queue_text.js"
import { askForRound } from "./round_dialog.js"

export default class QueueBar {
  #root
  #parts
  #words
  #countdown
  // A status that is read out must stay in the page: only what it says is replaced.
  #text = el("div", { class: "queue__text", role: "status" })
  #slots = el("div", { class: "queue__round" })
  #actions = el("div", { class: "queue__actions" })
  #box
  #signature = null
  #rules = null
  #stops = []

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
    this.#countdown = new Countdown(() => parts.store.serverClock.now())
    this.#words = new QueueWords(parts, this.#countdown.node)
    this.#box = el("div", { class: "queue__box" }, this.#text, this.#slots, this.#actions)
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    this.#root.append(this.#box)
    this.#stops = [
      store.on("room", (what) => {
        if (what !== "typing" && what !== "presence") this.#update()
      }),
      store.on("cast", () => this.#update()),
      store.on("spaces", () => {
        this.#readAnew()
        this.#update()
      }),
    ]
    this.#readAnew()
    this.#update()
  }

  unmount() {
    this.#countdown.stop()
    for (const stop of this.#stops) stop()
  }

  // Private

  // Other rules of auto mode leave it another number of turns.
  #readAnew() {
    const { openSpace: space, room } = this.#parts.store
    const rules = space && room && `${space.auto_mode_enabled} ${space.auto_mode_max_turns}`
    const isNew = this.#rules !== null && this.#rules !== rules
    this.#rules = rules
    if (isNew && rules) this.#parts.room.readQueue().catch(() => {})
  }

  #update() {
    const { store } = this.#parts
    if (!store.room) return
    const look = this.#look()
    const signature = JSON.stringify(look)
    if (signature === this.#signature) return
    this.#signature = signature
    this.#box.dataset.state = look.facts.state
    const hasPlaces = look.facts.slots.length > 1
    this.#box.dataset.places = hasPlaces ? "many" : "one"
    const focused = this.#box.contains(document.activeElement) ? document.activeElement.dataset.act : null
    replace(this.#text, this.#words.say(look))
    replace(this.#slots, hasPlaces && slotStrip(look.facts.slots, look.members))
    replace(this.#actions, this.#buttons(look))
    this.#countdown.show(look.facts.startsAt)
    if (focused)
      (this.#box.querySelector(`[data-act="${focused}"]`) ?? this.#box.querySelector("button"))?.focus()
  }

  // Everything that the bar depends on.
  #look() {
    const { store } = this.#parts
    const { room, openSpace: space, openConversation: conversation, openRoster: roster } = store
    const facts = describe(room)
    const turnsLeft = room.queue.turnsLeft ?? conversation?.auto_mode_turns_left
    return {
      facts,
      role: space?.my_role ?? null,
      order: space?.reply_order ?? null,
      auto: describeAuto({ space, turnsLeft, state: facts.state }),
      tailKind: roster.byId(room.timeline.tail?.space_membership_id)?.kind ?? null,
      dropped: room.dropped,
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

  #buttons({ facts, members, role, auto }) {
    const isIdle = facts.state === "idle"
    return [
      isIdle && may(role, "generate") && this.#speakers(members.filter((member) => member.isSpeaker)),
      may(role, "control") && facts.acts.map((name) => this.#control(name)),
      facts.hasRound && this.#roundButton(),
      autoSwitch(this.#parts, auto, may(role, "settings")),
    ]
  }

  #speakers(speakers) {
    if (speakers.length === 0) return null
    return el(
      "div",
      { class: "queue__choice", role: "group", "aria-label": t("queue.trigger_reply") },
      el(
        "div",
        { class: "queue__speakers" },
        speakers.map((speaker) => this.#speaker(speaker)),
      ),
      button(el("span", { class: "button__label" }, t("queue.anyone")), {
        look: "small quiet",
        icon: "spark",
        title: t("queue.generate"),
        "aria-label": t("queue.generate"),
        "data-act": "generate",
        click: (event) => this.#act(event, () => this.#parts.room.generate()),
      }),
    )
  }

  #speaker({ id, name, url, isMuted }) {
    const label = isMuted ? t("queue.trigger_muted", { name }) : t("queue.trigger", { name })
    const click = (event) => this.#act(event, () => this.#parts.room.generate(id))
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
    )
  }

  #control(name) {
    const { room } = this.#parts
    const [icon, label, act] = {
      pause: ["pause", t("queue.pause"), () => room.pause()],
      resume: ["play", t("queue.resume"), () => room.resume()],
      skip: ["skip", t("skip"), () => room.skip()],
      retry: ["retry", t("retry"), () => room.retry()],
      stop: ["stop", t("composer.stop"), () => room.stop()],
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

  // To be looked at by everybody, changed by who may.
  #roundButton() {
    return iconButton("list", t("queue.round"), {
      look: "small",
      "data-act": "round",
      click: () => askForRound(this.#parts),
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
