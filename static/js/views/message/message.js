// One row of the timeline with an author: a message, a pending message, or streamed text. All three
// share one node, so that a pending message becomes final without a jump.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { showServerHtml } from "../../base/server_html.js"
import { fullTime, timeOfDay } from "../../base/time.js"
import { splitParagraphs } from "../../models/message/emphasis.js"
import { audienceOf } from "../../models/whispers/audience.js"
import { writerOf } from "../../models/message/narration.js"
import { isOoc } from "../../models/message/out_of_character.js"
import { languageOf } from "../../models/message/text_language.js"
import { avatar, hueClass } from "../components/avatar.js"
import { button } from "../components/button.js"
import { explain } from "../components/error_messages.js"
import { translationNotes, translationSignature } from "./translation_notes.js"
import { whisperedTo } from "../whispers/recipient_names.js"
import { isTargetGone } from "../../models/conversation/quote.js"
import MessagePictures from "./message_pictures.js"
import ReactionsView from "./reactions.js"
import QuoteLine, { quoteSignature } from "./quote_line.js"
import ReasoningView from "./reasoning.js"
import StreamText, { paragraphNode } from "./stream_text.js"
import ToolCallsView from "./tool_calls.js"
import WhisperMark from "../whispers/whisper_mark.js"

export default class MessageView {
  node
  row = null
  #context
  #avatar = el("div", { class: "message__avatar" })
  #head = el("header", { class: "message__head" })
  #whisper = new WhisperMark()
  #quote
  #reasoning = new ReasoningView()
  #tools = new ToolCallsView()
  #body = el("div", { class: "message__body prose" })
  #foot = el("footer", { class: "message__foot" })
  #pictures
  #reactions
  #stream = null
  #signature = ""
  #bodySignature = ""

  // `context` has `roster()`, `myMembershipId()`, `userName()`, `swipes`, `translations`, `onRetry(clientId)`,
  // `onSendWithoutReply(clientId)`, `onDiscard(clientId)`, `onReveal(id)`, `onReact(message, emoji)`,
  // `mayReact()`, `onOpenPicture(attachments, index)`.
  constructor(context) {
    this.#context = context
    this.#reactions = new ReactionsView(context)
    this.#pictures = new MessagePictures((all, index) => context.onOpenPicture(all, index))
    this.#quote = new QuoteLine((id) => context.onReveal(id))
    const before = [this.#whisper.node, this.#quote.node, this.#reasoning.node, this.#tools.node]
    const after = [this.#pictures.node, this.#reactions.node, this.#foot]
    const main = el("div", { class: "message__main" }, this.#head, before, this.#body, after)
    this.node = el("article", { class: "message", tabindex: "-1" }, this.#avatar, main)
  }

  get body() {
    return this.#body
  }
  get foot() {
    return this.#foot
  }

  update(row) {
    this.row = row
    const author = this.#author(row)
    const signature = this.#sign(row, author)
    if (signature !== this.#signature) this.#show(row, author)
    this.#signature = signature
    this.#reactions.update(row.message)
    if (row.kind === "stream") this.updateStream()
  }

  updateStream() {
    this.#stream ??= new StreamText(this.#body)
    this.#stream.update(this.row.stream.text)
    this.#body.lang = languageOf(this.row.stream.text)
  }

  // Private

  #sign(row, author) {
    const { kind, message, entry, startsGroup } = row
    return [
      kind,
      startsGroup,
      author.name,
      author.person,
      author.url,
      author.isOwn,
      author.whisperedTo,
      message?.rev,
      message?.visibility,
      message?.is_ooc,
      message?.content,
      message?.metadata?.reasoning?.length,
      message?.metadata?.tool_calls?.length,
      message && this.#context.swipes.signature(message),
      message && translationSignature(this.#context.translations.of(message)),
      quoteSignature(message?.reply_to ?? entry?.replyTo),
      entry?.state,
      entry?.error,
    ].join("|")
  }

  #author(row) {
    const { kind, message, authorId, persona } = row
    const member = this.#context.roster().byId(authorId)
    const isOwn = kind === "pending" || (authorId !== null && authorId === this.#context.myMembershipId())
    const person =
      message?.author_name ??
      member?.display_name ??
      (isOwn ? this.#context.userName() : t("message.unknown_author"))
    const isRemoved = member?.status === "removed"
    const audience = audienceOf(row)
    const whisperTo = whisperedTo(this.#context.roster(), this.#context.myMembershipId(), audience, authorId)
    const common = { isOwn, isRemoved, whisperedTo: whisperTo }
    if (row.isNarrator) return { name: t("message.narrator"), person, url: null, ...common }
    if (persona) return { name: persona.name, person, url: persona.avatar_url ?? null, ...common }
    return { name: person, person: null, url: member?.avatar_url ?? null, ...common }
  }

  #show(row, author) {
    const { node } = this
    const { message } = row
    node.dataset.state = stateOf(row)
    if (message) {
      node.dataset.messageId = message.id
      node.dataset.seq = message.seq
      node.id = `m-${message.id}`
    }
    node.classList.toggle("message--own", author.isOwn)
    node.classList.toggle("message--starts", row.startsGroup)
    node.classList.toggle("message--excluded", message?.visibility === "excluded")
    node.classList.toggle("message--ooc", isOoc(row))
    node.classList.toggle("message--narrator", row.isNarrator === true)
    node.classList.toggle("message--whisper", author.whisperedTo !== null)
    node.setAttribute("aria-label", labelOf(row, author))
    this.#whisper.update(author.whisperedTo)
    this.#showHead(row, author)
    this.#quote.update(message?.reply_to ?? row.entry?.replyTo ?? null)
    this.#reasoning.update(message)
    this.#tools.update(message)
    this.#pictures.update((message ?? row.entry)?.attachments)
    this.#showBody(row)
    this.#showFoot(row)
  }

  #showHead(row, author) {
    this.#head.hidden = !row.startsGroup
    replace(this.#avatar, row.startsGroup && avatar({ name: author.name, url: author.url }))
    const name = bdi(author.name, `message__author ${hueClass(author.name)}`)
    const time = el(
      "time",
      { class: "message__time", datetime: new Date(row.at).toISOString(), title: timeTitle(row) },
      timeOfDay(row.at),
    )
    replace(this.#head, name, author.person && personBadge(author.person, row.isNarrator), row.kind === "stream" ? null : time)
  }

  // Replaces the body only if its text has changed, so that selections are kept.
  #showBody({ kind, message, entry }) {
    if (kind === "stream") {
      if (this.#bodySignature !== "stream") replace(this.#body)
      this.#bodySignature = "stream"
      return
    }
    const translated = message ? this.#context.translations.of(message) : null
    const { html, lang } = translated?.isShown
      ? { html: translated.entry.html, lang: translated.entry.language }
      : { html: message?.html, lang: languageOf(message?.content ?? entry.content) }
    const signature = message ? `m${lang}${html ?? ""}${message.content}` : `p${entry.content}`
    if (signature === this.#bodySignature) return
    this.#bodySignature = signature
    this.#stream = null
    this.#body.lang = lang
    if (message && typeof html === "string") showServerHtml(this.#body, html)
    else replace(this.#body, splitParagraphs(message?.content ?? entry.content).map(paragraphNode))
  }

  #showFoot({ kind, message, entry }) {
    this.#foot.classList.toggle("message__foot--failed", entry?.state === "failed")
    if (kind === "pending") {
      const mark = isOoc({ entry }) && oocNote()
      return replace(this.#foot, mark, entry.state === "failed" ? this.#failure(entry) : null)
    }
    const focused = this.#foot.contains(document.activeElement) ? document.activeElement.dataset.id : null
    replace(this.#foot, message ? this.#notes(message) : null)
    // If the focused arrow is disabled now, the other one gets the focus.
    const next = focused ? [`[data-id="${focused}"]:enabled`, ".swipes button:enabled"] : []
    next.map((css) => this.#foot.querySelector(css)).find(Boolean)?.focus()
  }

  #notes(message) {
    const { swipes, translations } = this.#context
    return [swipes.bar(message), translationNotes(translations, message), notes(message)]
  }

  #failure(entry) {
    const { clientId, error } = entry
    const known = {
      network: t("message.failed_network"),
      interrupted: t("message.failed_interrupted"),
    }
    const { onRetry, onSendWithoutReply, onDiscard } = this.#context
    if (isTargetGone(entry))
      return [
        el("span", { class: "message__note" }, icon("alert"), t("reply.target_gone")),
        button(t("reply.send_without"), { look: "small", click: () => onSendWithoutReply(clientId) }),
        button(t("discard"), { look: "small quiet", click: () => onDiscard(clientId) }),
      ]
    return [
      el("span", { class: "message__note" }, icon("alert"), known[error] ?? explain(error)),
      button(t("retry"), { look: "small", click: () => onRetry(clientId) }),
      button(t("discard"), { look: "small quiet", click: () => onDiscard(clientId) }),
    ]
  }
}

function labelOf(row, { name, whisperedTo: names }) {
  const about = { name, time: timeOfDay(row.at) }
  if (names !== null) return t("whisper.message_label", { ...about, names })
  return isOoc(row) ? t("message.label_ooc", about) : t("message.label", about)
}

// The person behind a persona or the narrator.
function personBadge(person, isNarrator) {
  const title = t(isNarrator ? "message.written_by" : "persona.played_by", { name: person })
  return el("span", { class: "message__person", title }, bdi(person))
}

// The time, and the number of the message for commands.
function timeTitle({ at, seq }) {
  return seq ? t("message.time_and_seq", { time: fullTime(at), seq }) : fullTime(at)
}

function stateOf({ kind, entry }) {
  if (kind === "pending") return entry.state
  return kind === "stream" ? "streaming" : "final"
}

// Notes below a message: out of character, written by a person for a character, stopped, truncated, edited, excluded from prompts, not remembered.
function notes(message) {
  const found = []
  if (isOoc({ message })) found.push(oocNote())
  const writer = writerOf(message)
  if (writer) found.push(note("edit", t("message.written_by", { name: writer })))
  if (message.metadata?.stopped) found.push(note("stop", t("message.stopped")))
  if (message.metadata?.truncated) found.push(note("alert", t("message.truncated")))
  if (message.edited_at)
    found.push(
      el(
        "span",
        { class: "message__note", title: fullTime(Date.parse(message.edited_at)) },
        t("message.edited"),
      ),
    )
  if (message.visibility === "excluded") found.push(note("eye-off", t("message.excluded")))
  if (message.remember === false) found.push(note("memory-off", t("message.not_remembered")))
  return found
}

function oocNote() {
  const node = note("ooc", t("message.ooc"))
  node.title = t("message.ooc_hint")
  return node
}

function note(name, text) {
  return el("span", { class: "message__note" }, icon(name), text)
}
