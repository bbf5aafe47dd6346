// The editor of a character: the fields of its card as a form, the card as JSON, its picture, and
// export.
import { el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { fieldsOf, withFields } from "../../models/characters/card_draft.js"
import { avatar } from "../components/avatar.js"
import { button, submitButton } from "../components/button.js"
import { cardFields } from "./card_fields.js"
import { confirm, openDialog } from "../components/dialog.js"
import { area, check, field, form } from "../components/form.js"
import { scriptList } from "../regex_scripts/script_list.js"
import { showPublicCard } from "./public_card.js"

const FILES = [
  { format: "png" },
  { format: "json", spec: "v2" },
  { format: "json", spec: "v3" },
  { format: "charx" },
]

// Unsaved changes by character, kept when the dialog is closed.
const drafts = new Map()

export async function openCardEditor(parts, characterId) {
  try {
    const character = await parts.library.character(characterId)
    if (character.card === null) await showPublicCard(character)
    else await new CardEditor(parts, character).open()
  } catch (error) {
    parts.toasts.error(error)
  }
}

class CardEditor {
  #parts
  #character
  #document
  #isReadOnly
  #made = null
  #close = null
  #avatar = el("div", { class: "editor__avatar" })
  #removal = null
  #share = null
  #body = el("div", {})
  #isDone = false

  constructor(parts, character) {
    this.#parts = parts
    this.#character = character
    this.#document = drafts.get(character.id) ?? character.card
    this.#isReadOnly = !parts.library.mayChange(character)
  }

  async open() {
    const { id, name } = this.#character
    const isDraft = drafts.has(id)
    await openDialog({
      title: t("card.edit_title", { name }),
      wide: true,
      content: (close) => {
        this.#close = close
        this.#show()
        return [
          isDraft && this.#draftNote(),
          this.#isReadOnly && el("p", { class: "dialog__lead" }, t("card.read_only")),
          this.#head(),
          this.#body,
          this.#scripts(),
        ]
      },
    })
    this.#keepDraft()
  }

  // Private

  #show() {
    this.#made = cardFields(fieldsOf(this.#document), { isReadOnly: this.#isReadOnly })
    const json = this.#json()
    const children = [this.#made.node, json, this.#shareSwitch(), this.#buttons()].filter(Boolean)
    replace(this.#body, form({ fields: this.#made.fields, submit: () => this.#save(), children }))
  }

  #edited() {
    return withFields(this.#document, this.#made.read())
  }

  async #save() {
    const { library, toasts } = this.#parts
    if (this.#made.read().name.trim() === "") return this.#made.fields.name.showError(t("field.needed"))
    const share = this.#share.control.checked
    const saved = await library.save(this.#character.id, { card: this.#edited(), share_whole_card: share })
    this.#isDone = true
    drafts.delete(saved.id)
    toasts.show(t("saved"))
    this.#close(true)
    await library.reloadRoster(saved)
  }

  #keepDraft() {
    const { id, card } = this.#character
    const edited = this.#edited()
    if (this.#isDone || this.#isReadOnly || JSON.stringify(edited) === JSON.stringify(card)) return
    drafts.set(id, edited)
    this.#parts.toasts.show(t("card.draft_kept"))
  }

  #draftNote() {
    const note = el("p", { class: "outcome" }, icon("alert"), t("card.draft"))
    const back = button(t("card.draft_discard"), {
      look: "small quiet",
      click: () => {
        drafts.delete(this.#character.id)
        this.#document = this.#character.card
        this.#show()
        note.remove()
      },
    })
    note.append(back)
    return note
  }

  #head() {
    this.#showAvatar()
    return el(
      "div",
      { class: "editor__head" },
      this.#avatar,
      el(
        "div",
        { class: "editor__tools" },
        !this.#isReadOnly && this.#pictureButtons(),
        el("div", { class: "editor__files", role: "group", "aria-label": t("card.export") }, this.#links()),
      ),
    )
  }

  #showAvatar() {
    const { name, avatar_url: url } = this.#character
    replace(this.#avatar, avatar({ name, url, size: "preview" }))
    if (!this.#removal) return
    if (!url && document.activeElement === this.#removal) this.#removal.previousElementSibling.focus()
    this.#removal.hidden = !url
  }

  #links() {
    return FILES.map((file) =>
      el(
        "a",
        {
          class: "button button--small button--quiet",
          href: this.#parts.library.exportPath(this.#character.id, file),
          download: "",
          "data-act": `export_${[file.format, file.spec].filter(Boolean).join("_")}`,
        },
        icon("down"),
        t(`card.export_${[file.format, file.spec].filter(Boolean).join("_")}`),
      ),
    )
  }

  #pictureButtons() {
    const change = button(t("card.picture"), { look: "small", icon: "image", click: () => this.#choosePicture() })
    this.#removal = button(t("card.picture_remove"), {
      look: "small quiet",
      icon: "trash",
      click: () => this.#changePicture((library, id) => library.removePicture(id)),
    })
    this.#removal.hidden = !this.#character.avatar_url
    return el("div", { class: "editor__files" }, change, this.#removal)
  }

  #choosePicture() {
    const picker = el("input", { type: "file", accept: "image/png,image/jpeg,image/webp,image/gif" })
    picker.addEventListener("change", () =>
      this.#changePicture((library, id) => library.setPicture(id, picker.files[0])),
    )
    picker.click()
  }

  async #changePicture(act) {
    const { library, toasts } = this.#parts
    try {
      await act(library, this.#character.id)
      this.#character = await library.character(this.#character.id)
      this.#showAvatar()
      await library.reloadRoster(this.#character)
    } catch (error) {
      toasts.error(error)
    }
  }

  // The whole card as JSON, including what the form does not show.
  #json() {
    const control = area({
      rows: "12",
      spellcheck: "false",
      class: "input input--area input--code",
      readonly: this.#isReadOnly,
    })
    const made = field({ label: t("card.json"), hint: t("card.json_hint"), control })
    const use = button(t("card.json_use"), {
      look: "small",
      "data-act": "use_json",
      click: () => {
        const found = parsed(control.value)
        if (!found) return made.showError(t("character.problem_json"))
        this.#document = found
        this.#show()
      },
    })
    const toggle = ({ currentTarget }) => {
      if (currentTarget.open) control.value = JSON.stringify(this.#edited(), null, 2)
    }
    return el(
      "details",
      { class: "editor__part", on: { toggle } },
      el("summary", { class: "editor__summary" }, t("card.part_json")),
      made.node,
      !this.#isReadOnly && use,
    )
  }

  // Allowing applies at once; the scripts themselves are changed in the JSON.
  #scripts() {
    const { library, regexScripts } = this.#parts
    const { id, regex_scripts: scripts, regex_allowed: isAllowed } = this.#character
    return scriptList(this.#parts, {
      scripts,
      isAllowed,
      mayAllow: regexScripts.mayAllow(this.#character),
      allow: (allowed) => library.save(id, { regex_allowed: allowed }),
    })
  }

  // Only those who can change the card decide whether it is shared.
  #shareSwitch() {
    if (this.#isReadOnly) return null
    this.#share = check({
      label: t("card.share_whole"),
      hint: t("card.share_whole_hint"),
      checked: this.#share?.control.checked ?? this.#character.share_whole_card,
      name: "share_whole_card",
    })
    return this.#share.node
  }

  #buttons() {
    if (this.#isReadOnly)
      return el("div", { class: "form__actions" }, button(t("close"), { click: () => this.#close() }))
    return el(
      "div",
      { class: "form__actions" },
      button(t("card.delete"), { look: "quiet", icon: "trash", click: () => this.#remove() }),
      submitButton(t("save")),
    )
  }

  async #remove() {
    const { id, name } = this.#character
    const isSure = await confirm({
      title: t("card.delete_title", { name }),
      text: t("card.delete_text"),
      action: t("delete"),
    })
    if (!isSure) return
    try {
      await this.#parts.library.remove(id)
      this.#isDone = true
      drafts.delete(id)
      this.#close(true)
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }
}

function parsed(text) {
  try {
    const found = JSON.parse(text)
    return typeof found === "object" && found !== null && !Array.isArray(found) ? found : null
  } catch {
    return null
  }
}
