// The composer: drafts, Enter, Send and Stop.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { describeCopilot, locksComposer } from "../../models/conversation/copilot.js"
import { CONVERSATION_EVENTS } from "../../models/conversation/open_conversation.js"
import { may } from "../../models/members/rights.js"
import { readPrefix } from "../../models/personas/personas.js"
import { iconButton } from "../components/button.js"
import { copilotNotice } from "./copilot_notice.js"
import ComposerCounter, { isTooLong } from "./composer_counter.js"
import ComposerPictures from "./composer_pictures.js"
import ComposerQuote from "./composer_quote.js"
import CopilotPanel from "./copilot_panel.js"
import MentionList from "./mention_list.js"
import PersonaSwitch from "./persona_switch.js"
import SlowModeNotice from "./slow_mode_notice.js"
import TypingNotifier from "./typing_notifier.js"
import WhisperBar from "../whispers/whisper_bar.js"

// With touch, Enter inserts a line break; with a keyboard it sends.
const TOUCH = matchMedia("(hover: none) and (pointer: coarse)")
const EVENTS = CONVERSATION_EVENTS.filter((name) => name !== "typing")

export default class Composer {
  #root
  #parts
  #callbacks
  #conversationId
  #field
  #send
  #stop
  #counter = new ComposerCounter()
  #pictures
  #whisper
  #box
  #quote
  #copilotButton
  #oocButton
  #slowMode
  #mentions
  #personaSwitch
  // The personas are loaded with the first input, and once more for a text that may name one.
  #hasLoadedPersonas = false
  #hasAskedForPersonas = false
  #copilotPanel
  // The notice that replaces the box while the copilot is active, and the values it shows.
  #copilotNotice = null
  #noticeSignature = null
  #typing
  #stops = []

  // Callbacks: `onSent()`, `onContinue()` (Alt+Enter, as in SillyTavern), and `onEditLast()`, which returns whether a message can be edited.
  constructor(root, parts, callbacks) {
    this.#root = root
    this.#parts = parts
    this.#callbacks = callbacks
  }

  // Lifecycle

  mount() {
    const { store, drafts } = this.#parts
    this.#conversationId = store.openConversation.conversationId
    this.#typing = new TypingNotifier((active) => this.#parts.conversation.typing(this.#conversationId, active))
    this.#build()
    this.#pictures.mount()
    this.#field.value = drafts.read(this.#conversationId)
    this.#root.addEventListener("submit", this.#onSubmit)
    this.#stops = [
      store.onAny(EVENTS, (name) => this.#onChange(name)),
      store.on("roster", () => this.#update()),
      store.on("spaces", () => this.#update()),
      store.on("personas", () => this.#update()),
    ]
    this.#update()
    this.#resize()
  }

  unmount() {
    this.#typing.update(false)
    this.#slowMode.stop()
    this.#pictures.unmount()
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
      blur: () => this.#onBlur(),
      click: () => this.#mentions.update(),
    }
    const label = { "aria-label": t("composer.field"), "aria-describedby": "composer-whisper composer-slow composer-count" }
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
    this.#whisper = new WhisperBar(this.#parts, () => this.#update())
    this.#copilotPanel = new CopilotPanel(this.#parts, { onChoose: (text) => this.#insertCandidate(text) })
    this.#copilotButton = iconButton("spark", t("copilot_panel.open"), {
      class: "composer__help",
      "aria-expanded": "false",
      "aria-controls": this.#copilotPanel.node.id,
      click: () => this.#togglePanel(!this.#copilotPanel.isOpen),
    })
    this.#oocButton = iconButton("ooc", t("composer.ooc"), {
      title: t("composer.ooc_hint"),
      class: "composer__ooc",
      "aria-pressed": "false",
      click: () => this.#setOoc(!this.#isOoc),
    })
    this.#slowMode = new SlowModeNotice(
      () => this.#parts.store.serverClock.now(),
      () => this.#update(),
    )
    this.#mentions = new MentionList(this.#field, {
      members: () => this.#mentionable(),
      onPick: (text, caret) => this.#setText(text, caret),
    })
    this.#personaSwitch = new PersonaSwitch(this.#parts)
    this.#pictures = new ComposerPictures(this.#parts, this.#conversationId, () => this.#update())
    const buttons = [this.#whisper.button, this.#pictures.button, this.#oocButton, this.#copilotButton]
    this.#quote = new ComposerQuote(() => this.#removeQuote())
    this.#box = el(
      "div",
      { class: "composer__box", on: { keydown: (event) => this.#onBoxKey(event) } },
      this.#copilotPanel.node,
      this.#mentions.node,
      this.#whisper.node,
      this.#quote.node,
      this.#pictures.node,
      el("div", { class: "composer__row" }, this.#personaSwitch.node, ...buttons, this.#field, this.#stop, this.#send),
      this.#slowMode.node,
      this.#counter.node,
    )
    replace(this.#root, this.#box)
  }

  #onChange(name) {
    if (name === "reply") this.#replyChanged()
    this.#update()
  }

  // Focuses the field for a new reply, and inserts the text of a discarded one.
  #replyChanged() {
    const { openConversation } = this.#parts.store
    const { replyTo, returnedText } = openConversation
    if (returnedText !== null) {
      openConversation.returnedText = null
      const before = this.#field.value.trim() === "" ? "" : `${this.#field.value}\n`
      this.#field.value = before + returnedText
      this.#onInput()
    }
    this.#quote.update(replyTo)
    this.#whisper.answer(replyTo)
    if ((replyTo || returnedText !== null) && !this.#box.hidden) this.#field.focus()
  }

  #removeQuote() {
    this.#parts.conversation.replyTo(null)
    this.#field.focus()
  }

  #update() {
    const { store } = this.#parts
    if (!store.openConversation) return
    const closed = this.#closedReason()
    const isCopilotActive = closed === null && this.#updateCopilotNotice()
    this.#box.hidden = closed !== null || isCopilotActive
    this.#root.querySelector(".composer__closed")?.remove()
    if (closed) this.#root.append(el("p", { class: "composer__closed" }, closed))
    const isRunning = store.openConversation.isRunning && may(store.openSpace?.my_role, "control")
    const isEmpty = this.#field.value.trim() === "" && this.#pictures.isEmpty
    const focused = document.activeElement
    this.#whisper.update(this.#field.value)
    this.#field.placeholder = this.#placeholder()
    // Stop replaces Send; with text in the field both are shown.
    this.#stop.hidden = !isRunning
    this.#send.hidden = isRunning && isEmpty
    this.#slowMode.show(this.#parts.conversation.slowUntil())
    this.#send.disabled =
      isEmpty || isTooLong(this.#field.value) || this.#slowMode.isWaiting || !this.#canSendParts
    if ((focused === this.#send && this.#send.hidden) || (focused === this.#stop && this.#stop.hidden))
      this.#field.focus()
    this.#counter.update(this.#field.value)
    this.#personaSwitch.update()
    this.#quote.update(store.openConversation.replyTo)
    this.#copilotPanel.update()
  }

  // Shows the copilot notice. Returns whether it is shown.
  #updateCopilotNotice() {
    const { store } = this.#parts
    const { myMembership: membership, openConversation } = store
    const { conversationId, queue } = openConversation
    const copilot = describeCopilot({ membership, conversationId, state: queue.state })
    const shown = locksComposer(copilot) ? JSON.stringify([copilot, membership.display_name]) : null
    if (shown === this.#noticeSignature) return shown !== null
    this.#noticeSignature = shown
    const hadFocus = this.#root.contains(document.activeElement)
    this.#copilotNotice?.remove()
    this.#copilotNotice = shown && copilotNotice(this.#parts, copilot, membership.display_name)
    if (this.#copilotNotice) {
      this.#togglePanel(false)
      this.#typing.update(false)
      this.#root.append(this.#copilotNotice)
    } else this.#box.hidden = false
    if (hadFocus) (this.#copilotNotice?.querySelector("button:last-of-type") ?? this.#field).focus()
    return shown !== null
  }

  #togglePanel(isOpen) {
    if (isOpen === this.#copilotPanel.isOpen) return
    this.#copilotButton.setAttribute("aria-expanded", String(isOpen))
    if (isOpen) return this.#copilotPanel.open()
    this.#copilotPanel.close()
    if (!this.#box.hidden) this.#field.focus()
  }

  get #isOoc() {
    return this.#oocButton.getAttribute("aria-pressed") === "true"
  }

  // Whether the next message is out of character.
  #setOoc(isOoc) {
    this.#oocButton.setAttribute("aria-pressed", String(isOoc))
    this.#box.classList.toggle("composer__box--ooc", isOoc)
    this.#update()
    this.#field.focus()
  }

  // Replaces the text with a suggestion; the browser's undo restores it.
  #insertCandidate(text) {
    this.#field.focus()
    this.#field.select()
    if (!document.execCommand("insertText", false, text)) {
      this.#field.value = text
      this.#onInput()
    }
  }

  #onBoxKey(event) {
    if (event.key !== "Escape") return
    const isPanel = this.#copilotPanel.isOpen
    if (!isPanel && !this.#parts.store.openConversation.replyTo) return
    event.preventDefault()
    if (isPanel) this.#togglePanel(false)
    else this.#removeQuote()
  }

  #placeholder() {
    const { openSpace: space, openRoster: roster } = this.#parts.store
    if (this.#isOoc) return t("composer.placeholder_ooc")
    if (this.#whisper.isWhisper) return t("whisper.placeholder")
    if (roster.characters.length === 1)
      return t("composer.placeholder_one", { name: roster.characters[0].display_name })
    return t("composer.placeholder", { name: space?.name ?? "" })
  }

  // Returns why the user cannot write, or null.
  #closedReason() {
    const { myMembership, openSpace, openRoster } = this.#parts.store
    if (!openSpace || openRoster.active.length === 0) return null
    if (openSpace.status === "archived") return t("composer.archived")
    if (!myMembership) return t("composer.not_a_member")
    return myMembership.participation === "observer" ? t("composer.observer") : null
  }

  #onInput() {
    if (!this.#hasLoadedPersonas) this.#parts.personas.load().catch(() => {})
    this.#hasLoadedPersonas = true
    this.#parts.drafts.write(this.#conversationId, this.#field.value)
    this.#resize()
    this.#update()
    this.#mentions.update()
    this.#typing.update(this.#field.value.trim() !== "")
  }

  // For browsers without `field-sizing`.
  #resize() {
    if (CSS.supports("field-sizing", "content")) return
    this.#field.style.height = "auto"
    this.#field.style.height = `${this.#field.scrollHeight}px`
  }

  #onBlur() {
    this.#mentions.close()
    this.#typing.update(false)
  }

  // Returns the other active members.
  #mentionable() {
    const { myMembership, openRoster } = this.#parts.store
    return openRoster.active.filter((member) => member.id !== myMembership?.id)
  }

  #setText(text, caret) {
    this.#field.value = text
    this.#field.setSelectionRange(caret, caret)
    this.#onInput()
  }

  #onKey(event) {
    if (this.#mentions.onKey(event)) return
    // Safari reports 229 for the Enter that ends a composition.
    const isComposing = event.isComposing || event.keyCode === 229
    if (event.key === "Enter" && event.altKey && !isComposing) {
      event.preventDefault()
      this.#callbacks.onContinue()
    } else if (event.key === "Enter" && !event.shiftKey && !isComposing && !TOUCH.matches) {
      event.preventDefault()
      this.#root.requestSubmit()
    }
    if (event.key === "ArrowUp" && this.#field.value === "" && this.#callbacks.onEditLast())
      event.preventDefault()
  }

  #onSubmit = (event) => {
    event.preventDefault()
    const content = this.#field.value
    if (this.#send.disabled) return
    if (this.#closedReason() || this.#copilotNotice) return
    const { personas, conversation, store } = this.#parts
    if (content.startsWith("=") && !store.personas && !this.#hasAskedForPersonas) {
      // The text may begin with the name of a persona.
      this.#hasAskedForPersonas = true
      personas.load().catch(() => {}).finally(() => this.#root.requestSubmit())
      return
    }
    // Without a text after it, the name of a persona only chooses the persona, and `/w Name` the audience.
    const named = readPrefix(content, store.personas)
    if (named) this.#personaSwitch.choose(named.persona)
    const persona = named?.persona ?? personas.current
    const whisper = this.#whisper.take(named?.text ?? content)
    if (!whisper) return
    const text = whisper.text
    const mentions = this.#mentions.idsIn(text)
    const fields = { ...whisper.fields, ...(this.#isOoc && { is_ooc: true }), ...(mentions.length > 0 && { mentions }) }
    const isOnlyName = text.trim() === "" && this.#pictures.isEmpty
    if (!isOnlyName && store.openConversation?.conversationId !== this.#conversationId) return
    const attachments = isOnlyName ? [] : this.#pictures.take()
    const isSent = isOnlyName || conversation.send(this.#conversationId, text, { persona, fields, attachments })
    if (!isSent) return
    this.#setOoc(false)
    this.#mentions.reset()
    this.#togglePanel(false)
    this.#field.value = ""
    this.#parts.drafts.clear(this.#conversationId)
    this.#resize()
    this.#typing.update(false)
    this.#update()
    if (!isOnlyName) this.#callbacks.onSent()
    this.#field.focus()
  }

  get #canSendParts() {
    return this.#pictures.isReady && !this.#whisper.isBlocked
  }

  async #onStop() {
    this.#stop.disabled = true
    await this.#parts.conversation.stop().catch((error) => this.#parts.toasts.error(error))
    this.#stop.disabled = false
    this.#field.focus()
  }
}
