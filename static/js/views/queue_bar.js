// The bar above the field: who speaks, who is next and why; or, when nobody is due, whom to ask.
import { bdi, el, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { listParts } from "../base/time.js"
import { describe } from "../models/queue.js"
import { may } from "../models/rights.js"
import { avatar } from "./avatar.js"
import { button } from "./buttons.js"
import { explainChoice } from "./explain.js"

export default class QueueBar {
  #root
  #parts
  #box = el("div", { class: "queue__box" })
  #signature = null
  #stops = []

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
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
      store.on("spaces", () => this.#update()),
    ]
    this.#update()
  }

  unmount() {
    for (const stop of this.#stops) stop()
  }

  // Private

  #update() {
    const { store } = this.#parts
    if (!store.room) return
    const facts = describe(store.room)
    const speakers = store.openRoster.speakers.map(
      ({ id, display_name: name, avatar_url: url, participation }) => ({
        id,
        name,
        url,
        isMuted: participation === "muted",
      }),
    )
    const tailKind = store.openRoster.byId(store.room.timeline.tail?.space_membership_id)?.kind
    const role = store.openSpace?.my_role
    const signature = JSON.stringify([facts, speakers, tailKind, role, store.openSpace?.reply_order])
    if (signature === this.#signature) return
    this.#signature = signature
    this.#box.dataset.state = facts.state
    const focused = this.#box.contains(document.activeElement) ? document.activeElement.dataset.act : null
    if (facts.state === "idle")
      replace(
        this.#box,
        this.#hint(speakers, tailKind, may(role, "generate")),
        may(role, "generate") && this.#speakers(speakers),
      )
    else replace(this.#box, this.#now(facts), may(role, "control") && this.#controls(facts))
    if (focused)
      (this.#box.querySelector(`[data-act="${focused}"]`) ?? this.#box.querySelector("button"))?.focus()
  }

  #name(id) {
    return this.#parts.store.openRoster.nameOf(id) ?? t("message.someone")
  }

  // Nobody is due

  #hint(speakers, tailKind, mayChoose) {
    return el("span", { class: "queue__text" }, this.#hintText(speakers, tailKind, mayChoose))
  }

  // Who may not choose is not told to.
  #hintText(speakers, tailKind, mayChoose) {
    const isManual = this.#parts.store.openSpace?.reply_order === "manual"
    if (speakers.length === 0) return t("queue.no_characters")
    if (tailKind === "human") return mayChoose ? t("queue.nobody_due") : t("queue.nobody_due_yet")
    return isManual && mayChoose ? t("queue.your_turn_manual") : t("queue.your_turn")
  }

  #speakers(speakers) {
    if (speakers.length === 0) return null
    const anyone = button(el("span", { class: "button__label" }, t("queue.anyone")), {
      look: "small quiet",
      icon: "spark",
      title: t("queue.generate"),
      "aria-label": t("queue.generate"),
      "data-act": "generate",
      click: (event) => this.#act(event, () => this.#parts.room.generate()),
    })
    return el(
      "div",
      { class: "queue__actions", role: "group", "aria-label": t("queue.let_speak") },
      el(
        "div",
        { class: "queue__speakers" },
        speakers.map((speaker) => this.#speaker(speaker)),
      ),
      anyone,
    )
  }

  #speaker({ id, name, url, isMuted }) {
    const label = isMuted ? t("queue.speak_muted", { name }) : t("queue.speak", { name })
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

  // Somebody is

  #now({ state, now, next, because, upcoming }) {
    const text = el("div", { class: "queue__text", role: "status" })
    const first = {
      generating: now && t("queue.speaking", { name: this.#name(now) }),
      queued: next && t("queue.next_alone", { name: this.#name(next) }),
      paused: t("queue.paused"),
      failed: t("queue.failed", { name: this.#name(next ?? now) }),
    }[state]
    text.append(
      el("span", { class: "queue__now" }, el("span", { class: `queue__dot queue__dot--${state}` }), first),
    )
    if (because && state !== "paused" && state !== "failed") text.append(this.#because(because))
    const after = state === "paused" ? [next, ...upcoming].filter(Boolean) : upcoming
    if (after.length)
      text.append(
        el(
          "span",
          { class: "queue__next" },
          t("queue.then"),
          " ",
          listParts(after.map((id) => this.#name(id))).map(({ type, value }) =>
            type === "element" ? bdi(value) : value,
          ),
        ),
      )
    return text
  }

  #because(reason) {
    const text = explainChoice(reason)
    return el(
      "button",
      {
        class: "queue__because",
        type: "button",
        "data-act": "because",
        title: text,
        "aria-label": t("queue.because", { text }),
        on: { click: () => this.#parts.toasts.show(t("queue.because", { text })) },
      },
      t("queue.why"),
    )
  }

  #controls({ state, hasRound }) {
    const { room } = this.#parts
    const buttons = {
      generating: [
        hasRound && ["pause", t("queue.pause"), () => room.pause()],
        hasRound && ["skip", t("skip"), () => room.skip()],
      ],
      queued: [
        hasRound && ["pause", t("queue.pause"), () => room.pause()],
        hasRound && ["skip", t("skip"), () => room.skip()],
      ],
      paused: [
        ["play", t("queue.resume"), () => room.resume()],
        ["skip", t("skip"), () => room.skip()],
      ],
      failed: [
        ["retry", t("retry"), () => room.retry()],
        ["skip", t("skip"), () => room.skip()],
      ],
    }[state].filter(Boolean)
    return el(
      "div",
      { class: "queue__actions" },
      buttons.map(([name, label, act]) => this.#control(name, label, act)),
    )
  }

  #control(name, label, act) {
    const click = (event) => this.#act(event, act)
    return button(el("span", { class: "button__label" }, label), {
      look: "small quiet",
      icon: name,
      title: label,
      "aria-label": label,
      "data-act": name,
      click,
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
