// The author's notes of the open conversation and of its space.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { authorNoteForm } from "./author_note_form.js"

export default class AuthorNoteSection {
  #root
  #parts
  #stops = []
  #shown = null

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    this.#stops = ["spaces", "rights"].map((what) => store.on(what, () => this.#show()))
    this.#show()
  }

  unmount() {
    for (const stop of this.#stops) stop()
  }

  // Private

  // Renders again only if a stored note has changed, so that unsaved input is kept.
  #show() {
    const { openConversationDocument: conversation, openSpace: space } = this.#parts.store
    if (!conversation || !space) return
    const ofBoth = [conversation.settings?.author_note, space.settings?.author_note]
    const signature = JSON.stringify([conversation.id, space.my_role, ofBoth])
    if (signature === this.#shown) return
    this.#shown = signature
    const { authorNotes } = this.#parts
    const place = focusPlace(this.#root)
    const ofConversation = authorNoteForm(this.#parts, {
      settings: conversation.settings,
      label: t("author_note.of_conversation"),
      hint: t("author_note.of_conversation_hint"),
      disabled: !may(space.my_role, "prompt"),
      save: (note) => this.#saved(authorNotes.setForConversation(this.#parts.store.openConversationDocument, note), 0),
    })
    const ofSpace = authorNoteForm(this.#parts, {
      settings: space.settings,
      label: t("author_note.of_space"),
      hint: t("author_note.of_space_hint"),
      disabled: !may(space.my_role, "settings"),
      save: (note) => this.#saved(authorNotes.setForSpace(this.#parts.store.openSpace, note), 1),
    })
    replace(
      this.#root,
      el("div", { class: "panel__title" }, el("h2", {}, t("author_note.title"))),
      el("p", { class: "field__hint" }, t("author_note.hint")),
      ofConversation,
      ofSpace,
    )
    controlsOf(this.#root)[place]?.focus()
  }

  // The form is rendered again after saving: restores the focus on the button.
  async #saved(saving, index) {
    await saving
    if (document.activeElement !== document.body) return
    this.#root.querySelectorAll("form")[index]?.querySelector("[type=submit]")?.focus()
  }
}

function controlsOf(root) {
  return [...root.querySelectorAll("textarea, summary, button, input, select")]
}

function focusPlace(root) {
  return controlsOf(root).indexOf(document.activeElement)
}
