// Runs the commands of the composer. A text is read at once; a command that posts nothing runs until its
// request is answered.
import { t } from "../../base/i18n.js"
import {
  commandsFor,
  MOST_HIDDEN,
  readCommand,
  readDice,
  readSeqs,
  readSpeaker,
} from "../../models/conversation/slash_commands.js"
import { fold } from "../../models/members/name_at.js"
import { may } from "../../models/members/rights.js"
import { readAuthorNote } from "../../models/presets/author_note.js"
import { UNDO_MS } from "../components/toast.js"

export default class CommandRunner {
  #parts
  #callbacks

  // Callbacks: `onBranch(message)` and `onImpersonate(instruction)`, which return promises.
  constructor(parts, callbacks) {
    this.#parts = parts
    this.#callbacks = callbacks
  }

  // The commands that the user may use.
  get commands() {
    return commandsFor(this.#parts.store.openSpace?.my_role)
  }

  // Reads a text. Returns null if it is posted as it is, else `{ post: { text, fields } }`, `{ run }` with a
  // function that returns a promise of a sentence, if the command cannot be run, or `{ error, word }` with
  // the sentence that explains why it is no command; `word` is set if the list of commands helps.
  read(text) {
    const command = readCommand(text, this.commands)
    if (!command) return null
    const { name, argument, unknown, forbidden } = command
    if (unknown) return { error: t("command.unknown", { command: `/${unknown}` }), word: unknown }
    if (forbidden) return { error: t("command.forbidden", { command: `/${forbidden}` }), word: forbidden }
    return this[name === "as" ? "asCharacter" : name](argument)
  }

  // The commands

  // The recipients are read before; what is left is a second `/w`.
  w() {
    return { error: t("command.w_twice") }
  }

  sys(text) {
    return text === "" ? missing("sys") : { post: { text, fields: { kind: "narrator" } } }
  }

  asCharacter(argument) {
    const found = readSpeaker(argument, this.#parts.store.openRoster.characters)
    if (!found) return { error: t("command.as_unknown") }
    const { speaker, text } = found
    return text === "" ? missing("as") : { post: { text, fields: { kind: "character", speaker_id: speaker.id } } }
  }

  roll(argument) {
    const dice = readDice(argument)
    return dice ? { post: { text: dice, fields: { kind: "roll" } } } : { error: t("command.roll_syntax") }
  }

  continue(instruction) {
    const { store, conversation } = this.#parts
    const { tail } = store.openConversation.timeline
    if (!tail) return { error: t("command.nothing_here") }
    return { run: () => conversation.continueMessage(tail, instruction) }
  }

  impersonate(instruction) {
    return { run: () => this.#callbacks.onImpersonate(instruction) }
  }

  persona(name) {
    return name === "" ? missing("persona") : { run: () => this.#choosePersona(name) }
  }

  hide(argument) {
    const seqs = this.#seqs(argument)
    if (!seqs) return { error: t("command.seqs_syntax", { command: "/hide" }) }
    if (seqs.to - seqs.from >= MOST_HIDDEN) return { error: t("command.hide_many", { n: MOST_HIDDEN }) }
    return { run: () => this.#hide(seqs) }
  }

  branch(argument) {
    const seqs = this.#seqs(argument)
    if (!seqs || seqs.from !== seqs.to) return { error: t("command.seqs_syntax", { command: "/branch" }) }
    return { run: () => this.#branch(seqs) }
  }

  note(text) {
    const { store, authorNotes, shell, toasts } = this.#parts
    const conversation = store.openConversationDocument
    const { combine: _, ...note } = readAuthorNote(conversation?.settings)
    if (text === "")
      return {
        run: async () => {
          if (note.text === "") toasts.show(t("command.note_none"))
          else shell.openPanel("lore")
        },
      }
    return {
      run: async () => {
        await authorNotes.setForConversation(conversation, { ...note, text })
        toasts.show(t("command.note_set"))
      },
    }
  }

  // Private

  #seqs(argument) {
    const { newestSeq } = this.#parts.store.openConversation.timeline
    return readSeqs(argument, newestSeq || null)
  }

  async #choosePersona(name) {
    const { personas, store } = this.#parts
    await personas.load()
    const persona = store.personas.find((it) => fold(it.name) === fold(name))
    const isSelf = fold(store.myMembership?.display_name ?? "") === fold(name)
    if (!persona && !isSelf) return t("command.persona_unknown", { name })
    await personas.choose(persona ?? null)
    return null
  }

  async #hide(seqs) {
    const { store, conversation, toasts } = this.#parts
    const found = await conversation.messagesBetween(seqs)
    if (found.length === 0) return t("command.no_message", { seq: seqs.from })
    const mine = store.myMembership?.id
    const mayHideAll = may(store.openSpace?.my_role, "delete_others")
    if (!mayHideAll && found.some((it) => it.space_membership_id !== mine)) return t("command.hide_others")
    const shown = found.filter(({ visibility }) => visibility === "normal")
    for (const message of shown) await conversation.setVisibility(message, "excluded")
    const undo = async () => {
      for (const message of shown) await conversation.setVisibility(message, "normal")
    }
    const run = () => undo().catch((error) => toasts.error(error))
    const action = shown.length > 0 ? { action: { label: t("undo"), run }, staysMs: UNDO_MS } : {}
    toasts.show(t("command.hidden", { n: shown.length }), action)
    return null
  }

  async #branch(seqs) {
    const [message] = await this.#parts.conversation.messagesBetween(seqs)
    if (!message) return t("command.no_message", { seq: seqs.from })
    await this.#callbacks.onBranch(message)
    return null
  }
}

function missing(name) {
  return { error: t("command.missing", { command: `/${name}`, argument: t(`command.${name}_argument`) }) }
}
