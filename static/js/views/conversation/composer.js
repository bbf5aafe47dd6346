// Where one writes: drafts, Enter, Send that turns into Stop, the word that one is typing.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { describeCopilot, locksComposer } from "../../models/conversation/copilot.js"
import { may } from "../../models/members/rights.js"
import { iconButton } from "../components/buttons.js"
import { copilotLock } from "./copilot_notice.js"
import HelperTray from "./copilot_panel.js"

const LONGEST_BYTES = 64 * 1024
const COUNTS_FROM_BYTES = 60 * 1024
const SAY_TYPING_EVERY_MS = 3000
const STOPS_TYPING_AFTER_MS = 5000

// Fingers write line by line; keyboards send with Enter.
const TOUCH = matchMedia("(hover: none) and (pointer: coarse)")
const encoder = new TextEncoder()

export default class Composer {
  #root
  #parts
  #callbacks
  #conversationId
  #field
  #send
  #stop
  #counter
  #box
  #help
  #tray
  // What stands in place of the box, and of what it tells.
  #lock = null
  #locked = null
  #saidTypingAt = 0
  #typingTimer = null
  #stops = []

  // `onSent()` and `onEditLast()` (which answers whether there was something to edit).
  constructor(root, parts, callbacks) {
    this.#root = root
    this.#parts = parts
    this.#callbacks = callbacks
  }

  // Lifecycle

  mount() {
    const { store, drafts } = this.#parts
    this.#conversationId = store.room.conversationId
    this.#build()
    this.#field.value = drafts.read(this.#conversationId)
    this.#root.addEventListener("submit", this.#onSubmit)
    this.#stops = [
      store.on("room", (what) => {
        if (what !== "typing") this.#update()
      }),
      store.on("cast", () => this.#update()),
      store.on("spaces", () => this.#update()),
    ]
    this.#update()
    this.#grow()
  }

  unmount() {
    this.#sayTyping(false)
    for (const stop of this.#stops) stop()
  }

  // Actions

  focus() {
    this.#field.focus()
  }

  // Private

  #build() {
    const on = {
      input: () => this.#onInput(),
      keydown: (event) => this.#onKey(event),
      blur: () => this.#sayTyping(false),
    }
    const label = { "aria-label": t("composer.field"), "aria-describedby": "composer-count" }
    const enter = TOUCH.matches ? "enter" : "send"
    this.#field = el("textarea", {
      class: "composer__field",
      rows: "1",
      name: "message",
      enterkeyhint: enter,
      ...label,
      on,
    })
    this.#send = iconButton("send", t("composer.send"), { class: "composer__send", type: "submit" })
    this.#stop = iconButton("stop", t("composer.stop"), {
      class: "composer__stop",
      hidden: true,
      click: () => this.#onStop(),
    })
    this.#counter = el("p", { class: "composer__count", id: "composer-count", role: "status", hidden: true })
    this.#tray = new HelperTray(this.#parts, { onChoose: (text) => this.#fill(text) })
    this.#help = iconButton("spark", t("copilot_panel.open"), {
      class: "composer__help",
      "aria-expanded": "false",
      "aria-controls": this.#tray.node.id,
      click: () => this.#turnTray(!this.#tray.isOpen),
    })
    this.#box = el(
      "div",
      { class: "composer__box", on: { keydown: (event) => this.#onBoxKey(event) } },
      this.#tray.node,
      el("div", { class: "composer__row" }, this.#help, this.#field, this.#stop, this.#send),
      this.#counter,
    )
    replace(this.#root, this.#box)
  }

  #update() {
    const { store } = this.#parts
    if (!store.room) return
    const closed = this.#whyClosed()
    const isLocked = closed === null && this.#updateLock()
    this.#box.hidden = closed !== null || isLocked
    this.#root.querySelector(".composer__closed")?.remove()
    if (closed) this.#root.append(el("p", { class: "composer__closed" }, closed))
    const isRunning = store.room.isRunning && may(store.openSpace?.my_role, "control")
    const isEmpty = this.#field.value.trim() === ""
    const focused = document.activeElement
    this.#field.placeholder = this.#placeholder()
    // Send turns into Stop; who writes while a reply is being written keeps both.
    this.#stop.hidden = !isRunning
    this.#send.hidden = isRunning && isEmpty
    this.#send.disabled = isEmpty || this.#isTooLong()
    if ((focused === this.#send && this.#send.hidden) || (focused === this.#stop && this.#stop.hidden))
      this.#field.focus()
    this.#updateCounter()
    this.#tray.update()
  }

  // While the AI speaks for me, its lock stands here. Says whether it does.
  #updateLock() {
    const { store } = this.#parts
    const { mySeat: seat, room } = store
    const copilot = describeCopilot({ seat, conversationId: room.conversationId, state: room.queue.state })
    const shown = locksComposer(copilot) ? JSON.stringify([copilot, seat.display_name]) : null
    if (shown === this.#locked) return shown !== null
    this.#locked = shown
    const hadFocus = this.#root.contains(document.activeElement)
    this.#lock?.remove()
    this.#lock = shown && copilotLock(this.#parts, copilot, seat.display_name)
    if (this.#lock) {
      this.#turnTray(false)
      this.#sayTyping(false)
      this.#root.append(this.#lock)
    } else this.#box.hidden = false
    if (hadFocus) (this.#lock?.querySelector("button:last-of-type") ?? this.#field).focus()
    return shown !== null
  }

  #turnTray(isOpen) {
    if (isOpen === this.#tray.isOpen) return
    this.#help.setAttribute("aria-expanded", String(isOpen))
    if (isOpen) return this.#tray.open()
    this.#tray.close()
    if (!this.#box.hidden) this.#field.focus()
  }

  // A chosen reply takes the place of what is written; the browser's undo brings that back.
  #fill(text) {
    this.#field.focus()
    this.#field.select()
    if (!document.execCommand("insertText", false, text)) {
      this.#field.value = text
      this.#onInput()
    }
  }

  #onBoxKey(event) {
    if (event.key !== "Escape" || !this.#tray.isOpen) return
    event.preventDefault()
    this.#turnTray(false)
  }

  #placeholder() {
    const { openSpace: space, openRoster: roster } = this.#parts.store
    if (roster.characters.length === 1)
      return t("composer.placeholder_one", { name: roster.characters[0].display_name })
    return t("composer.placeholder", { name: space?.name ?? "" })
  }

  // Who may not write is told why.
  #whyClosed() {
    const { mySeat, openSpace, openRoster } = this.#parts.store
    if (!openSpace || openRoster.active.length === 0) return null
    if (openSpace.status === "archived") return t("composer.archived")
    if (!mySeat) return t("composer.not_a_member")
    return mySeat.participation === "observer" ? t("composer.observer") : null
  }

  #updateCounter() {
    const bytes = encoder.encode(this.#field.value).length
    const isOver = bytes > LONGEST_BYTES
    this.#counter.hidden = bytes < COUNTS_FROM_BYTES
    this.#counter.classList.toggle("composer__count--over", isOver)
    const text = isOver
      ? t("composer.too_long", { n: bytes - LONGEST_BYTES })
      : t("composer.remaining", { n: LONGEST_BYTES - bytes })
    if (this.#counter.textContent !== text) this.#counter.textContent = text
  }

  #isTooLong() {
    // A UTF-16 unit is at most three bytes: short texts need no counting.
    const { value } = this.#field
    return value.length * 3 > LONGEST_BYTES && encoder.encode(value).length > LONGEST_BYTES
  }

  #onInput() {
    this.#parts.drafts.write(this.#conversationId, this.#field.value)
    this.#grow()
    this.#update()
    this.#sayTyping(this.#field.value.trim() !== "")
  }

  // Browsers without `field-sizing` get their height by hand.
  #grow() {
    if (CSS.supports("field-sizing", "content")) return
    this.#field.style.height = "auto"
    this.#field.style.height = `${this.#field.scrollHeight}px`
  }

  #onKey(event) {
    // 229 is what Safari says for the Enter that ends a composition.
    const isComposing = event.isComposing || event.keyCode === 229
    if (event.key === "Enter" && !event.shiftKey && !isComposing && !TOUCH.matches) {
      event.preventDefault()
      this.#root.requestSubmit()
    }
    if (event.key === "ArrowUp" && this.#field.value === "" && this.#callbacks.onEditLast())
      event.preventDefault()
  }

  #onSubmit = (event) => {
    event.preventDefault()
    const content = this.#field.value
    if (content.trim() === "" || this.#isTooLong() || this.#whyClosed() || this.#lock) return
    this.#turnTray(false)
    this.#field.value = ""
    this.#parts.drafts.clear(this.#conversationId)
    this.#grow()
    this.#sayTyping(false)
    this.#parts.room.send(content)
    this.#update()
    this.#callbacks.onSent()
    this.#field.focus()
  }

  async #onStop() {
    this.#stop.disabled = true
    await this.#parts.room.stop().catch((error) => this.#parts.toasts.error(error))
    this.#stop.disabled = false
    this.#field.focus()
  }

  #sayTyping(active) {
    clearTimeout(this.#typingTimer)
    if (!active) {
      if (this.#saidTypingAt > 0) this.#parts.room.typing(false)
      this.#saidTypingAt = 0
      return
    }
    this.#typingTimer = setTimeout(() => this.#sayTyping(false), STOPS_TYPING_AFTER_MS)
    if (Date.now() - this.#saidTypingAt < SAY_TYPING_EVERY_MS) return
    this.#saidTypingAt = Date.now()
    this.#parts.room.typing(true)
  }
}
