// The actions of a message: continue, reply, react, translate, copy, edit, regenerate, branch, bookmark,
// exclude from prompts, mark as out of character, switch its memory off, delete with undo.
//
// One toolbar serves all messages: it is at the message under the pointer or with the focus. On a touch
// screen a tap on a message shows it below the text, with labels. Only one message is a tab stop; arrow
// keys move between messages.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { copyText } from "../../base/clipboard.js"
import { may } from "../../models/members/rights.js"
import { isRoll } from "../../models/message/narration.js"
import { mayBeOoc } from "../../models/message/out_of_character.js"
import { isCut, isWritten, mayComeFromRun } from "../../models/message/swipes.js"
import { button, iconButton } from "../components/button.js"
import MessageEditor from "./message_editor.js"
import { openLearnedDialog, openReactionPicker, openRevisionsDialog, showPromptOfMessage } from "../on_demand.js"
import { UNDO_MS } from "../components/toast.js"

const TOUCH = matchMedia("(hover: none) and (pointer: coarse)")

export default class MessageTools {
  #list
  #parts
  #viewOf
  #swipes
  #bar = el("div", { class: "message__tools", role: "toolbar", "aria-label": t("tools.label") })
  #target = null
  // The id of the message and the labels that the toolbar shows.
  #filled = null
  #editor = null
  // The unsaved edit of an earlier visit, until its editor is open.
  #draft

  // `viewOf(node)` returns the MessageView of a row's node.
  constructor(list, parts, { viewOf, swipes }) {
    this.#list = list
    this.#parts = parts
    this.#viewOf = viewOf
    this.#swipes = swipes
    this.#draft = this.#storedDraft
  }

  // Lifecycle

  mount() {
    this.#list.addEventListener("pointerover", this.#onPointer)
    this.#list.addEventListener("click", this.#onTap)
    this.#list.addEventListener("focusin", this.#onFocus)
    this.#list.addEventListener("keydown", this.#onKey)
    this.#list.addEventListener("pointerleave", this.#onLeave)
  }

  unmount = () => {
    this.#editor?.abandon()
    this.#detach()
  }

  // Actions

  // Updates the tab stop and removes the toolbar if its message is gone.
  settle() {
    const rows = this.#rows()
    // Tab focuses the newest message, unless the focus is already in the list.
    const isInside = this.#list.contains(document.activeElement)
    const current = isInside ? document.activeElement.closest(".message") : rows.at(-1)
    for (const row of rows) row.tabIndex = row === current ? 0 : -1
    const isGone = this.#target && (!this.#target.node.isConnected || this.#target.row.kind !== "message")
    if (isGone) this.#detach()
    else if (this.#target) this.#fill()
    if (this.#editor && !this.#editor.isShown) {
      this.#editor.abandon()
      this.#editor = null
    }
    if (this.#draft) this.#reopen(this.#draft)
  }

  // Opens the editor, with the unsaved text if there is one. Returns false if the message cannot be
  // edited.
  edit(view, draft = this.#storedDraft) {
    const { message } = view.row
    if (!message || this.#editor || !this.#mayEdit(message)) return false
    this.#detach()
    this.#editor = new MessageEditor(view, this.#parts, {
      draft: draft?.messageId === message.id ? draft : null,
      onClose: () => {
        this.#editor = null
      },
      onReopen: (it) => this.#reopen(it),
    })
    if (this.#draft?.messageId === message.id) this.#draft = null
    this.#editor.open()
    return true
  }

  // Quotes the message above the composer.
  reply(message) {
    if (this.mayPost()) this.#parts.conversation.replyTo(message)
  }

  // Adds the user's reaction, or removes it.
  async react(message, emoji) {
    await this.#parts.conversation.react(message, emoji).catch((error) => this.#parts.toasts.error(error))
  }

  // Whether the user can write in the space.
  mayPost() {
    const { myMembership, openSpace } = this.#parts.store
    return Boolean(myMembership) && myMembership.participation !== "observer" && openSpace?.status !== "archived"
  }

  // Private

  #rows() {
    return [...this.#list.querySelectorAll(".message")]
  }

  get #storedDraft() {
    const { editDrafts, store } = this.#parts
    return editDrafts.read(store.openConversation.conversationId)
  }

  // Opens the editor with a text that was not saved, if its message is shown.
  #reopen(draft) {
    const view = this.#viewOf(this.#list.querySelector(`#m-${draft.messageId}`))
    if (view) this.edit(view, draft)
  }

  #attach(node) {
    const view = this.#viewOf(node)
    if (!view || view.row.kind !== "message" || view === this.#target || this.#editor) return
    this.#target = view
    this.#fill()
    node.append(this.#bar)
  }

  #detach() {
    this.#target = null
    this.#filled = null
    this.#bar.remove()
  }

  // Replaces the buttons only if other ones are needed, so that a pressed button stays. The focus keeps
  // its position.
  #fill() {
    const tools = this.#tools(this.#target.row.message)
    const filled = [this.#target.row.message.id, ...tools.map((it) => it.label)].join("\n")
    if (filled === this.#filled) return
    this.#filled = filled
    const focused = [...this.#bar.children].indexOf(document.activeElement)
    replace(
      this.#bar,
      tools.map(({ icon, label, run }) => {
        const click = () => run(this.#target.row.message)
        return TOUCH.matches
          ? button(label, { icon, look: "small quiet", "aria-label": label, click })
          : iconButton(icon, label, { look: "small", click })
      }),
    )
    if (focused >= 0) this.#bar.children[Math.min(focused, tools.length - 1)].focus()
  }

  // Returns the available actions, `{icon, label, run(message)}` each.
  #tools(message) {
    const { openSpace } = this.#parts.store
    const isExcluded = message.visibility === "excluded"
    const extend = this.#swipes.mayContinue(message) && {
      icon: "play",
      label: t("tools.continue"),
      run: (it) => this.#swipes.continueMessage(it),
    }
    return [
      isCut(message) && extend,
      this.mayPost() && { icon: "reply", label: t("tools.reply"), run: (it) => this.reply(it) },
      this.mayPost() && {
        icon: "smile",
        label: t("tools.react"),
        run: (it) => openReactionPicker(this.#parts, (emoji) => this.react(it, emoji)),
      },
      this.#translation(message),
      { icon: "copy", label: t("tools.copy"), run: (it) => this.#copy(it) },
      this.#mayEdit(message) && {
        icon: "edit",
        label: t("tools.edit"),
        run: (it) => this.edit(this.#viewOf(this.#list.querySelector(`#m-${it.id}`))),
      },
      message.edited_at !== null &&
        may(openSpace?.my_role, "edit_any") && {
          icon: "clock",
          label: t("revisions.title"),
          run: (it) => openRevisionsDialog(this.#parts, it),
        },
      this.#swipes.mayRegenerate(message) && {
        icon: "retry",
        label: t("tools.regenerate"),
        run: (it) => this.#swipes.regenerate(it),
      },
      !isCut(message) && extend,
      may(openSpace?.my_role, "generate") && {
        icon: "branch",
        label: t("tools.branch"),
        run: (it) => this.#swipes.branch(it),
      },
      mayComeFromRun(message) &&
        may(openSpace?.my_role, "prompt") && {
          icon: "list",
          label: t("prompt.of_run"),
          run: (it) => showPromptOfMessage(this.#parts, it),
        },
      { icon: "bookmark", label: this.#bookmarkLabel(message), run: (it) => this.#toggleBookmark(it) },
      { icon: "memory", label: t("memory.learned_title"), run: (it) => openLearnedDialog(this.#parts, it) },
      this.#mayDelete(message) && {
        icon: isExcluded ? "eye" : "eye-off",
        label: isExcluded ? t("tools.include") : t("tools.exclude"),
        run: (it) => this.#setVisibility(it, isExcluded ? "normal" : "excluded"),
      },
      this.#mayDelete(message) &&
        mayBeOoc(message) && {
          icon: "ooc",
          label: message.is_ooc ? t("tools.in_character") : t("tools.ooc"),
          run: (it) => this.#setOutOfCharacter(it, !it.is_ooc),
        },
      this.#mayDelete(message) &&
        this.#hasMemory(message) && {
          icon: message.remember ? "memory-off" : "memory",
          label: message.remember ? t("tools.do_not_remember") : t("tools.remember"),
          run: (it) => this.#setRemember(it, !message.remember),
        },
      this.#mayDelete(message) && {
        icon: "trash",
        label: t("tools.delete"),
        run: (it) => this.#delete(it),
      },
    ].filter(Boolean)
  }

  // The action that translates a message, or shows its original; false while that is not possible.
  #translation(message) {
    const { translations } = this.#parts
    if (!translations.isOffered) return false
    const { entry, isShown } = translations.of(message)
    if (entry?.state === "loading") return false
    const label = isShown ? t("translation.show_original") : t("translation.translate")
    return { icon: "translate", label, run: (it) => translations.toggle(it) }
  }

  // Whether the message is the user's own and the user is not an observer.
  #isMine(message) {
    const { myMembership } = this.#parts.store
    return myMembership?.participation !== "observer" && message.space_membership_id === myMembership?.id
  }

  #mayDelete(message) {
    return this.#isMine(message) || may(this.#parts.store.openSpace?.my_role, "delete_others")
  }

  // The memory of a message can be switched off only in a space that has a memory. It can always be switched
  // on again.
  #hasMemory(message) {
    return !message.remember || this.#parts.store.openSpace?.settings?.memory?.enabled !== false
  }

  // The server refuses edits only while a run writes into this message.
  #mayEdit(message) {
    const { openConversation, openSpace } = this.#parts.store
    if (isWritten(message, openConversation) || isRoll(message)) return false
    return this.#isMine(message) || may(openSpace?.my_role, "edit_any")
  }

  #bookmarkLabel(message) {
    return this.#parts.bookmarks.has(message) ? t("bookmark.remove") : t("bookmark.add")
  }

  async #toggleBookmark(message) {
    const { bookmarks, toasts } = this.#parts
    try {
      const isMarked = await bookmarks.toggle(message)
      toasts.show(isMarked ? t("bookmark.added") : t("bookmark.removed"))
    } catch (error) {
      return toasts.error(error)
    }
    this.settle()
  }

  async #copy(message) {
    const isDone = await copyText(message.content)
    this.#parts.toasts.show(isDone ? t("tools.copied") : t("tools.copy_failed"))
  }

  async #setVisibility(message, visibility) {
    await this.#parts.conversation
      .setVisibility(message, visibility)
      .catch((error) => this.#parts.toasts.error(error))
  }

  async #setRemember(message, remember) {
    await this.#parts.conversation
      .setRemember(message, remember)
      .catch((error) => this.#parts.toasts.error(error))
  }

  async #setOutOfCharacter(message, isOoc) {
    await this.#parts.conversation
      .setOutOfCharacter(message, isOoc)
      .catch((error) => this.#parts.toasts.error(error))
  }

  async #delete(message) {
    const { conversation, toasts } = this.#parts
    const next = this.#neighbor(this.#target.node)
    try {
      await conversation.deleteMessage(message)
    } catch (error) {
      return toasts.error(error)
    }
    next?.focus()
    const undo = () => conversation.setVisibility(message, message.visibility).catch((error) => toasts.error(error))
    toasts.show(t("tools.deleted"), { action: { label: t("undo"), run: undo }, staysMs: UNDO_MS })
  }

  #neighbor(node) {
    const rows = this.#rows()
    const index = rows.indexOf(node)
    return document.activeElement && node.contains(document.activeElement)
      ? (rows[index - 1] ?? rows[index + 1])
      : null
  }

  // Not on a touch screen: a toolbar that appears under the finger would get the click.
  #onPointer = (event) => {
    if (event.pointerType === "touch" || TOUCH.matches) return
    const node = event.target.closest(".message")
    if (node) this.#attach(node)
  }

  // With touch, a tap on a message shows its toolbar, a second one hides it. Text that is being selected
  // is no tap.
  #onTap = (event) => {
    if (event.pointerType !== "touch" && !TOUCH.matches) return
    const control = event.target.closest("a, button, textarea, input, summary, label, .message__tools")
    if (control || !document.getSelection().isCollapsed) return
    const node = event.target.closest(".message")
    if (!node) return
    if (this.#target?.node === node) return this.#detach()
    this.#attach(node)
    if (this.#bar.isConnected) this.#bar.scrollIntoView({ block: "nearest" })
  }

  #onFocus = (event) => {
    const node = event.target.closest(".message")
    if (!node) return
    for (const row of this.#rows()) row.tabIndex = row === node ? 0 : -1
    if (event.target.matches(":focus-visible")) this.#attach(node)
  }

  // The toolbar leaves with the pointer, unless the keyboard is used in the list.
  #onLeave = (event) => {
    if (event.pointerType === "touch" || TOUCH.matches) return
    const focused = document.activeElement
    if (this.#list.contains(focused) && focused.matches(":focus-visible")) return
    const isInBar = this.#bar.contains(focused)
    const node = this.#target?.node
    this.#detach()
    if (isInBar) node?.focus({ preventScroll: true })
  }

  #onKey = (event) => {
    const node = event.target.closest(".message")
    if (!node || event.target.closest("textarea, input")) return
    if (event.target === node) return this.#moveAmongMessages(event, node)
    if (this.#bar.contains(event.target)) this.#moveInBar(event, node)
  }

  #moveAmongMessages(event, node) {
    if (event.key.toLowerCase() === "r" && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault()
      const { message } = this.#viewOf(node)?.row ?? {}
      if (message) this.reply(message)
      return
    }
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key]
    if (!step) return
    const rows = this.#rows()
    const next = rows[rows.indexOf(node) + step]
    if (!next) return
    event.preventDefault()
    next.focus()
    this.#attach(next)
    next.scrollIntoView({ block: "nearest" })
  }

  #moveInBar(event, node) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (event.key === "Escape") node.focus()
    if (!step) return
    const buttons = [...this.#bar.children]
    event.preventDefault()
    buttons[(buttons.indexOf(event.target) + step + buttons.length) % buttons.length].focus()
  }
}
