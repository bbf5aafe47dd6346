// To whom the next message is whispered: the button at the composer that chooses the members, and, while it
// is a whisper, the line above the text that names all who will see it. `/w Name` at the beginning of the
// text chooses them too.
//
// **Invariant:** a text is sent as a whisper if and only if this line is shown, and to the members that it
// names.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { recipientsOf } from "../../models/whispers/audience.js"
import { readWhisper } from "../../models/whispers/whisper_command.js"
import { avatar } from "../components/avatar.js"
import { button, iconButton } from "../components/button.js"
import { nameOf, namesOf } from "./recipient_names.js"
import { openRecipientsDialog } from "../on_demand.js"

// The names of more members are not listed in the sentence; all of them are below it.
const MOST_NAMED = 6

export default class WhisperBar {
  node
  button
  #parts
  #onChange
  // A live region must stay in the document; only its content is replaced.
  #text = el("p", { class: "whisper__text", id: "composer-whisper", role: "status" })
  #members = el("ul", { class: "whisper__members", "aria-label": t("whisper.recipients") })
  #actions = el("div", { class: "whisper__actions" })
  #signature = null
  // What the text says, if it begins with `/w`.
  #typed = null
  // The text that was not sent, because no member has this name.
  #refused = null
  // The answered message whose audience was chosen.
  #answeredId = null

  // `onChange()` is called when others were chosen.
  constructor(parts, onChange) {
    this.#parts = parts
    this.#onChange = onChange
    this.button = iconButton("lock", t("whisper.choose"), {
      class: "composer__whisper",
      "aria-haspopup": "dialog",
      "aria-pressed": "false",
      click: () => this.#open(),
    })
    this.node = el(
      "div",
      { class: "whisper", role: "group", "aria-label": t("whisper.label"), hidden: true },
      this.#text,
      this.#members,
      this.#actions,
    )
  }

  get isWhisper() {
    return this.#ids !== null || this.#typed !== null
  }
  // Whether the message cannot be sent: a chosen member has left.
  get isBlocked() {
    return this.#gone.length > 0
  }

  // Actions

  // Shows who will see this text.
  update(text) {
    this.#typed = readWhisper(text, this.#others)
    if (text !== this.#refused) this.#refused = null
    const { openRoster: roster, myMembership } = this.#parts.store
    const shown = [this.#ids, this.#typed, this.#refused, myMembership?.id]
    const names = this.#ids?.map((id) => [roster.nameOf(id), roster.byId(id)?.avatar_url, roster.byId(id)?.status])
    const signature = JSON.stringify([shown, names])
    if (signature === this.#signature) return
    this.#signature = signature
    this.#show()
  }

  // Chooses those who saw the answered message, if it was a whisper.
  answer(quote) {
    if ((quote?.id ?? null) === this.#answeredId) return
    this.#answeredId = quote?.id ?? null
    if (quote?.audience) this.#choose(recipientsOf(quote.audience, this.#parts.store.myMembership?.id))
  }

  // Returns the text without the command and the fields of the post; null if it must not be sent.
  take(text) {
    this.update(text)
    if (this.#typed?.unknown !== undefined) {
      this.#refused = text
      this.update(text)
      return null
    }
    if (this.isBlocked) return null
    const { myMembership, openConversation } = this.#parts.store
    const ids = this.#ids
    const rest = this.#typed?.text ?? text
    if (this.#typed) this.#choose(ids)
    if (ids) return { text: rest, fields: { audience: [...new Set([...ids, myMembership.id])] } }
    // Without this, the answer to a whisper would be a whisper.
    return { text: rest, fields: openConversation.replyTo?.audience ? { audience: null } : {} }
  }

  // Private

  get #id() {
    return this.#parts.store.openConversation.conversationId
  }

  // The members that the line names; null: everyone.
  get #ids() {
    return this.#typed ? (this.#typed.ids ?? null) : this.#parts.whisperChoices.read(this.#id)
  }

  // The members that can be chosen.
  get #others() {
    const { myMembership, openRoster } = this.#parts.store
    return openRoster.active.filter((member) => member.id !== myMembership?.id)
  }

  // The chosen ones that are not in the space any more.
  get #gone() {
    const { openRoster: roster } = this.#parts.store
    if (roster.active.length === 0) return []
    return (this.#ids ?? []).filter((id) => roster.byId(id)?.status !== "active")
  }

  #choose(ids) {
    this.#parts.whisperChoices.write(this.#id, ids)
    this.#onChange()
  }

  #open() {
    openRecipientsDialog(this.#parts, {
      members: this.#others,
      chosen: this.#parts.whisperChoices.read(this.#id) ?? [],
      onChoose: (ids) => this.#choose(ids),
    })
  }

  #show() {
    const isShown = this.isWhisper
    const focused = this.node.contains(document.activeElement) ? document.activeElement.dataset.act : null
    this.node.hidden = !isShown
    this.node.parentElement?.classList.toggle("composer__box--whisper", isShown)
    this.button.setAttribute("aria-pressed", String(isShown))
    replace(this.#text, isShown && [icon("lock"), el("span", { dir: "auto" }, this.#sentence())])
    this.#text.classList.toggle("whisper__text--refused", this.#refused !== null || this.isBlocked)
    // The members in the text are changed there.
    replace(this.#members, this.#ids?.map((id) => this.#member(id, this.#typed === null)))
    this.#members.hidden = !this.#ids
    replace(this.#actions, this.#typed === null && isShown && this.#buttons())
    if (focused) (this.node.querySelector(`[data-act="${focused}"]`) ?? this.button).focus()
  }

  #sentence() {
    const { openRoster: roster, myMembership } = this.#parts.store
    const ids = this.#ids
    if (!ids) return this.#reason(this.#typed.unknown)
    const names = namesOf(roster, myMembership?.id, this.#gone)
    if (this.isBlocked) return t("whisper.gone", { names })
    const who =
      ids.length > MOST_NAMED
        ? t("whisper.only_many", { n: ids.length })
        : t("whisper.only", { names: namesOf(roster, myMembership?.id, ids) })
    return roster.isForPeople(ids) ? t("whisper.no_reply", { text: who }) : who
  }

  // While a name is being written there is nothing to complain about.
  #reason(word) {
    return word === "" || this.#refused === null ? t("whisper.write_name", { command: "/w" }) : t("whisper.unknown", { name: word })
  }

  #member(id, isRemovable) {
    const { openRoster: roster, myMembership } = this.#parts.store
    const name = nameOf(roster, myMembership?.id, id)
    const isGone = this.#gone.includes(id)
    return el(
      "li",
      { class: `whisper__member ${isGone ? "whisper__member--gone" : ""}`, "data-member": id },
      avatar({ name, url: roster.byId(id)?.avatar_url ?? null, size: "small" }),
      bdi(name, "truncate"),
      isRemovable &&
        iconButton("close", t("whisper.remove", { name }), {
          look: "small",
          "data-act": `remove-${id}`,
          click: () => this.#choose(this.#ids.filter((it) => it !== id)),
        }),
    )
  }

  #buttons() {
    return [
      button(t("whisper.change"), { look: "small quiet", "data-act": "change", click: () => this.#open() }),
      button(t("whisper.everyone"), { look: "small quiet", "data-act": "everyone", click: () => this.#choose(null) }),
    ]
  }
}
