// Sends what is typed at the composer, or a quick reply: posts it, or runs the command in it.
//
// **Invariant:** what is typed leaves the composer only when it is shown as a message, or when its command has
// succeeded.
import { t } from "../../base/i18n.js"
import { readPrefix } from "../../models/personas/personas.js"
import { explain } from "../components/error_messages.js"

export default class ComposerSubmission {
  #parts
  #conversationId
  #composer
  #hasAskedForPersonas = false
  // Whether a command waits for its response.
  isBusy = false

  // `composer` has `whisper`, `mentions`, `pictures`, `personaSwitch`, `commands`, `isOoc()`, `isClosed()`,
  // `typed()`, and is called back: `onChange()`, `onRefused({ error, word }, isTyped)`, `onSent(isTyped)` after
  // a message, `onChosen(isTyped)` after a text that only named a persona or recipients, and `onRun()` after the
  // command of a typed text.
  constructor(parts, conversationId, composer) {
    this.#parts = parts
    this.#conversationId = conversationId
    this.#composer = composer
  }

  // Actions

  // Posts a text. A quick reply is not typed: what is typed stays as it is.
  submit(content, isTyped) {
    const { personas, store } = this.#parts
    const { whisper, personaSwitch, commands } = this.#composer
    if (this.#composer.isClosed() || this.isBusy) return
    if (content.startsWith("=") && !store.personas && !this.#hasAskedForPersonas) {
      // The text may begin with the name of a persona.
      this.#hasAskedForPersonas = true
      personas.load().catch(() => {}).finally(() => this.submit(content, isTyped))
      return
    }
    // Without a text after it, the name of a persona only chooses the persona, and `/w Name` the audience.
    const named = readPrefix(content, store.personas)
    if (named) personaSwitch.choose(named.persona)
    const whispered = whisper.take(named?.text ?? content)
    if (!whispered) return
    const command = commands.read(whispered.text)
    if (command?.error) return this.#composer.onRefused(command, isTyped)
    if (command?.run) return this.#run(command.run, content, isTyped)
    const isOoc = isTyped && this.#composer.isOoc()
    if (command && isOoc) return this.#composer.onRefused({ error: t("command.not_ooc") }, isTyped)
    this.#post({ text: whispered.text, ...command?.post }, whispered.fields, named?.persona, isTyped)
  }

  // Private

  #post({ text, fields: ofKind = {} }, ofWhisper, persona, isTyped) {
    const { personas, conversation, store } = this.#parts
    const { mentions, pictures, isOoc } = this.#composer
    const ids = mentions.idsIn(text)
    const ooc = isTyped && isOoc() ? { is_ooc: true } : {}
    const fields = { ...ofWhisper, ...ofKind, ...ooc, ...(ids.length > 0 && { mentions: ids }) }
    // With a command or a quick reply, the pictures stay for the user's next message.
    const hasPictures = isTyped && !ofKind.kind && !pictures.isEmpty
    if (text.trim() === "" && !hasPictures) return this.#composer.onChosen(isTyped)
    if (store.openConversation?.conversationId !== this.#conversationId) return
    const attachments = hasPictures ? pictures.take() : []
    const who = isWithoutPersona(ofKind.kind) ? undefined : (persona ?? personas.current)
    const isSent = conversation.send(this.#conversationId, text, { persona: who, fields, attachments })
    if (isSent) this.#composer.onSent(isTyped)
  }

  // Runs a command that posts nothing.
  async #run(run, content, isTyped) {
    const { drafts, store } = this.#parts
    this.isBusy = true
    this.#composer.onChange()
    const problem = await run().catch(explain)
    this.isBusy = false
    const hasFailed = typeof problem === "string"
    // The command may have opened another conversation.
    const isOpen = store.openConversation?.conversationId === this.#conversationId
    if (isTyped && !hasFailed && this.#composer.typed() === content) {
      drafts.clear(this.#conversationId)
      if (isOpen) this.#composer.onRun()
    }
    if (!isOpen) return
    this.#composer.onChange()
    if (hasFailed) this.#composer.onRefused({ error: problem }, isTyped)
  }
}

// The user's persona is not the one who speaks as a narrator or as a character.
function isWithoutPersona(kind) {
  return kind === "narrator" || kind === "character"
}
