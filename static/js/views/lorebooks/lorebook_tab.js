// Lore & note: the lorebooks that take part here, and one's shelf of them.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { button } from "../components/buttons.js"
import LoreLinks from "./lorebook_links.js"
import { nameBook, openBook } from "./lorebook_dialog.js"
import NoteSection from "../prompt/author_note_section.js"
import WorldSection from "./lorebook_settings_section.js"

export default class LoreTab {
  #root
  #parts
  #shelf = el("ul", { class: "lore-library" })
  #places = el("div", { class: "panel__section" })
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
      store.on("rights", () => this.#showPlaces()),
      store.on("cast", () => this.#showPlaces()),
      this.#parts.lore.onBrought(() => this.#loadAll()),
    ]
    const [note, world] = [1, 2].map(() => el("section", { class: "panel__section" }))
    this.#sections = [new NoteSection(note, this.#parts), new WorldSection(world, this.#parts)]
    for (const it of this.#sections) it.mount()
    replace(this.#root, note, this.#places, world, this.#shelfSection())
    this.#showPlaces()
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
      this.#books = await this.#parts.lore.shelf()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
    if (this.#isGone) return
    this.#showShelf()
    for (const it of this.#links) it.setShelf(this.#books)
  }

  // The conversation, the space, and each character that sits in it, as long as they stay the same.
  #showPlaces() {
    const { openSpace: space, room, openRoster: roster } = this.#parts.store
    if (!space || !room) return
    const mine = may(space.my_role, "settings")
    const places = [
      { kind: "conversations", id: room.conversationId, title: t("lorebook.of_conversation"), isMine: mine },
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
    const signature = JSON.stringify(places)
    if (this.#places.dataset.signature === signature) return
    this.#places.dataset.signature = signature
    for (const it of this.#links) it.unmount()
    this.#links = places.map((place) => new LoreLinks(this.#parts, place, () => this.#load()))
    replace(
      this.#places,
      this.#links.map((it) => it.mount(this.#books)),
    )
  }

  #shelfSection() {
    return el(
      "section",
      { class: "panel__section", "data-lore": "library" },
      el("div", { class: "panel__title" }, el("h2", {}, t("lorebook.library"))),
      this.#shelf,
      el(
        "div",
        { class: "member__buttons" },
        button(t("lorebook.new"), { look: "small", icon: "plus", click: () => this.#create() }),
        button(t("lorebook.import"), {
          look: "small quiet",
          click: () => this.#parts.drop.choose({ accept: ".json,application/json" }),
        }),
      ),
    )
  }

  #showShelf() {
    const focused = this.#shelf.contains(document.activeElement) ? document.activeElement.dataset.bookId : null
    replace(
      this.#shelf,
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
    if (focused) this.#shelf.querySelector(`[data-book-id="${focused}"]`)?.focus()
  }

  async #create() {
    const name = await nameBook()
    if (!name) return
    try {
      const book = await this.#parts.lore.create(name)
      await this.#open(book.id)
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }

  async #open(id) {
    await openBook(this.#parts, id)
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
