// The tab "Lore": the author's notes, the linked lorebooks and the user's own lorebooks.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { button } from "../components/button.js"
import LorebookLinks from "./lorebook_links.js"
import { openNewLorebookDialog, openLorebookDialog } from "./lorebook_dialog.js"
import AuthorNoteSection from "../prompt/author_note_section.js"
import RegexScriptsSection from "../regex_scripts/scripts_section.js"
import LorebookSettingsSection from "./lorebook_settings_section.js"

export default class LorebookTab {
  #root
  #parts
  #library = el("ul", { class: "lore-library" })
  #targets = el("div", { class: "panel__section" })
  #books = []
  #links = []
  #sections = []
  #stops = []
  #isGone = false

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    this.#stops = [
      store.on("rights", () => this.#showTargets()),
      store.on("roster", () => this.#showTargets()),
      this.#parts.lorebooks.onImported(() => this.#loadAll()),
    ]
    const [note, settings, scripts] = [1, 2, 3].map(() => el("section", { class: "panel__section" }))
    this.#sections = [
      new AuthorNoteSection(note, this.#parts),
      new LorebookSettingsSection(settings, this.#parts),
      new RegexScriptsSection(scripts, this.#parts),
    ]
    for (const it of this.#sections) it.mount()
    replace(this.#root, note, this.#targets, settings, scripts, this.#librarySection())
    this.#showTargets()
    this.#load()
  }

  unmount() {
    this.#isGone = true
    for (const it of this.#sections) it.unmount()
    for (const stop of this.#stops) stop()
    for (const it of this.#links) it.unmount()
  }

  // Private

  async #load() {
    try {
      this.#books = await this.#parts.lorebooks.list()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
    if (this.#isGone) return
    this.#showLibrary()
    for (const it of this.#links) it.setLibrary(this.#books)
  }

  // Shows the links of the conversation, the space and each character. Rendered again only if the
  // targets have changed.
  #showTargets() {
    const { openSpace: space, openConversation, openRoster: roster } = this.#parts.store
    if (!space || !openConversation) return
    const mine = may(space.my_role, "settings")
    const targets = [
      { kind: "conversations", id: openConversation.conversationId, title: t("lorebook.of_conversation"), isMine: mine },
      { kind: "spaces", id: space.id, title: t("lorebook.of_space"), isMine: mine },
      ...roster.characters
        .filter((member) => member.character_id && member.status === "active")
        .map((member) => ({
          kind: "characters",
          id: member.character_id,
          title: t("lorebook.of_character", { name: member.display_name }),
          isMine: null,
        })),
    ]
    const signature = JSON.stringify(targets)
    if (this.#targets.dataset.signature === signature) return
    this.#targets.dataset.signature = signature
    for (const it of this.#links) it.unmount()
    this.#links = targets.map((target) => new LorebookLinks(this.#parts, target, () => this.#load()))
    replace(
      this.#targets,
      this.#links.map((it) => it.mount(this.#books)),
    )
  }

  #librarySection() {
    return el(
      "section",
      { class: "panel__section", "data-lore": "library" },
      el("div", { class: "panel__title" }, el("h2", {}, t("lorebook.library"))),
      this.#library,
      el(
        "div",
        { class: "member__buttons" },
        button(t("lorebook.new"), { look: "small", icon: "plus", click: () => this.#create() }),
        button(t("lorebook.import"), {
          look: "small quiet",
          click: () => this.#parts.fileDrop.choose({ accept: ".json,application/json" }),
        }),
      ),
    )
  }

  #showLibrary() {
    const focused = this.#library.contains(document.activeElement) ? document.activeElement.dataset.bookId : null
    replace(
      this.#library,
      this.#books.length === 0 && el("li", { class: "panel__empty" }, t("lorebook.library_empty")),
      this.#books.map((book) =>
        el(
          "li",
          { class: "lore-row" },
          el(
            "button",
            {
              class: "member__button",
              type: "button",
              "data-book-id": String(book.id),
              on: { click: () => this.#open(book.id) },
            },
            el(
              "span",
              { class: "member__names" },
              bdi(book.name, "member__name truncate"),
              el("span", { class: "member__note" }, t("lorebook.n_entries", { n: book.n_entries })),
            ),
          ),
          exportLink(book),
        ),
      ),
    )
    if (focused) this.#library.querySelector(`[data-book-id="${focused}"]`)?.focus()
  }

  async #create() {
    const name = await openNewLorebookDialog()
    if (!name) return
    try {
      const book = await this.#parts.lorebooks.create(name)
      await this.#open(book.id)
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }

  async #open(id) {
    await openLorebookDialog(this.#parts, id)
    await this.#loadAll()
  }

  async #loadAll() {
    if (this.#isGone) return
    await this.#load()
    for (const it of this.#links) it.refresh()
  }
}

function exportLink({ id, name }) {
  const label = t("lorebook.export", { name })
  const props = { class: "icon-button", href: `/api/lorebooks/${id}/export`, download: "" }
  return el("a", { ...props, "aria-label": label, title: label }, icon("down"))
}
