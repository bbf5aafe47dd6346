// The composer: drafts, Enter, Send and Stop, commands.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { CONVERSATION_EVENTS } from "../../models/conversation/open_conversation.js"
import { may } from "../../models/members/rights.js"
import CommandRunner from "../commands/command_runner.js"
import CommandSource from "../commands/command_source.js"
import CompletionList from "../commands/completion_list.js"
import MentionSource from "../commands/mention_source.js"
import QuickReplyBar from "../commands/quick_reply_bar.js"
import { iconButton } from "../components/button.js"
import ComposerCounter, { isTooLong } from "./composer_counter.js"
import ComposerLock from "./composer_lock.js"
import ComposerPictures from "./composer_pictures.js"
import ComposerQuote from "./composer_quote.js"
import ComposerSubmission from "./composer_submission.js"
import CopilotPanel from "./copilot_panel.js"
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
  #completions
  #mentions
  #commandSource
  // Why a command was not run; announced.
  #refusal = el("p", { class: "composer__refusal", id: "composer-command", role: "alert", hidden: true })
  #quickReplies
  #personaSwitch
  #submission
  // The personas are loaded with the first input.
  #hasLoadedPersonas = false
  #copilotPanel
  #lock
  #typing
  #stops = []

  // Callbacks: `onSent()`, `onContinue()` (Alt+Enter, as in SillyTavern), `onBranch(message)`, which returns a
  // promise, and `onEditLast()`, which returns whether a message can be edited.
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
      click: () => this.#completions.update(),
    }
    const label = { "aria-label": t("composer.field"), "aria-describedby": "composer-whisper composer-command composer-slow composer-count" }
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
    const commands = new CommandRunner(this.#parts, {
      onBranch: (message) => this.#callbacks.onBranch(message),
      onImpersonate: (instruction) => this.#impersonate(instruction),
    })
    this.#mentions = new MentionSource(() => this.#mentionable())
    this.#commandSource = new CommandSource(() => commands.commands)
    const sources = [this.#commandSource, this.#mentions]
    this.#completions = new CompletionList(this.#field, sources, (text, caret) => this.#setText(text, caret))
    this.#quickReplies = new QuickReplyBar((text) => this.#submission.submit(text, false))
    this.#personaSwitch = new PersonaSwitch(this.#parts)
    this.#pictures = new ComposerPictures(this.#parts, this.#conversationId, () => this.#update())
    this.#submission = new ComposerSubmission(this.#parts, this.#conversationId, {
      whisper: this.#whisper,
      mentions: this.#mentions,
      pictures: this.#pictures,
      personaSwitch: this.#personaSwitch,
      commands,
      isOoc: () => this.#isOoc,
      isClosed: () => this.#lock.isLocked || this.#slowMode.isWaiting,
      typed: () => this.#field.value,
      onChange: () => this.#update(),
      onRefused: (refusal, isTyped) => this.#refuse(refusal, isTyped),
      onSent: (isTyped) => this.#onSent(isTyped),
      onChosen: (isTyped) => (isTyped ? this.#clear() : this.#update()),
      onRun: () => this.#empty(),
    })
    const buttons = [this.#whisper.button, this.#pictures.button, this.#oocButton, this.#copilotButton]
    this.#quote = new ComposerQuote(() => this.#removeQuote())
    this.#box = el(
      "div",
      { class: "composer__box", on: { keydown: (event) => this.#onBoxKey(event) } },
      this.#copilotPanel.node,
      this.#completions.node,
      this.#whisper.node,
      this.#quote.node,
      this.#pictures.node,
      this.#refusal,
      this.#quickReplies.node,
      el("div", { class: "composer__row" }, this.#personaSwitch.node, ...buttons, this.#field, this.#stop, this.#send),
      this.#slowMode.node,
      this.#counter.node,
    )
    this.#lock = new ComposerLock(this.#root, this.#box, this.#parts, () => this.#onCopilot())
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
    this.#lock.update()
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
      isEmpty || this.#submission.isBusy || isTooLong(this.#field.value) || this.#slowMode.isWaiting || !this.#canSendParts
    if ((focused === this.#send && this.#send.hidden) || (focused === this.#stop && this.#stop.hidden))
      this.#field.focus()
    this.#counter.update(this.#field.value)
    this.#personaSwitch.update()
    this.#quickReplies.update(store.openSpace?.settings)
    this.#quote.update(store.openConversation.replyTo)
    this.#copilotPanel.update()
  }

  #onCopilot() {
    this.#togglePanel(false)
    this.#typing.update(false)
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

  #onInput() {
    if (!this.#hasLoadedPersonas) this.#parts.personas.load().catch(() => {})
    this.#hasLoadedPersonas = true
    this.#parts.drafts.write(this.#conversationId, this.#field.value)
    this.#refusal.hidden = true
    this.#resize()
    this.#update()
    this.#completions.update()
    this.#typing.update(this.#field.value.trim() !== "")
  }

  // For browsers without `field-sizing`.
  #resize() {
    if (CSS.supports("field-sizing", "content")) return
    this.#field.style.height = "auto"
    this.#field.style.height = `${this.#field.scrollHeight}px`
  }

  #onBlur() {
    this.#completions.close()
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
    if (this.#completions.onKey(event)) return
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
    if (!this.#send.disabled) this.#submission.submit(this.#field.value, true)
  }

  // Shows why a text was not sent, and the commands if it names none of them. The text stays.
  #refuse({ error, word = null }, isTyped) {
    replace(this.#refusal, error)
    this.#refusal.hidden = false
    if (!isTyped) return
    this.#field.focus()
    const start = this.#field.value.indexOf(`/${word}`)
    if (word && start >= 0) this.#completions.showAll(this.#commandSource, { start, query: word })
  }

  // Empties the composer after a message was sent.
  #clear() {
    this.#setOoc(false)
    this.#mentions.reset()
    this.#completions.close()
    this.#togglePanel(false)
    this.#parts.drafts.clear(this.#conversationId)
    this.#empty()
    this.#field.focus()
  }

  #empty() {
    this.#field.value = ""
    this.#refusal.hidden = true
    this.#resize()
    this.#typing.update(false)
    this.#update()
  }

  #onSent(isTyped) {
    this.#refusal.hidden = true
    if (isTyped) this.#clear()
    else this.#update()
    this.#callbacks.onSent()
  }

  // Opens the suggestions and requests some.
  async #impersonate(instruction) {
    this.#togglePanel(true)
    await this.#copilotPanel.suggest(instruction)
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
