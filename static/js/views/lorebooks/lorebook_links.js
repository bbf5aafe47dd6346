// The lorebooks that are linked to one target, in order: dragged by their handles, or moved with Alt
// and the arrow keys.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button, iconButton } from "../components/button.js"
import { openLorebookDialog } from "./lorebook_dialog.js"
import Sortable from "../components/sortable.js"

const MOVES = ["Alt+ArrowUp", "Alt+ArrowDown"]

export default class LorebookLinks {
  #parts
  #target
  #onChanged
  #list = el("ul", { class: "member-list" })
  #adding = el("div", { class: "field__row" })
  #books = []
  #library = []
  #sortable
  #isGone = false

  // `target` is `{ kind, id, title, isMine }`. `isMine` is null if it is unknown whether the user can
  // change the character.
  constructor(parts, target, onChanged) {
    this.#parts = parts
    this.#target = target
    this.#onChanged = onChanged
    this.#sortable = new Sortable(this.#list, {
      handle: ".member__grip",
      onDrop: (row, index) => this.#move(Number(row.dataset.bookId), index),
    })
  }

  // Lifecycle

  mount(library) {
    this.#library = library
    if (this.#isChangeable) this.#sortable.mount()
    this.refresh()
    return el(
      "section",
      { class: "panel__section", "data-lore": this.#target.kind },
      el("div", { class: "panel__title" }, el("h2", {}, this.#target.title)),
      this.#list,
      this.#adding,
    )
  }

  unmount() {
    this.#isGone = true
    this.#sortable.unmount()
  }

  setLibrary(library) {
    this.#library = library
    this.#show()
  }

  async refresh() {
    await this.#try(async () => {
      this.#books = await this.#parts.lorebooks.linked(this.#target)
    })
    this.#show()
  }

  // Private

  get #isChangeable() {
    return this.#target.isMine !== false
  }

  #show() {
    if (this.#isGone) return
    const focused = this.#list.contains(document.activeElement) && document.activeElement.closest("[data-book-id]")
    replace(
      this.#list,
      this.#books.length === 0 && el("li", { class: "member__note" }, t("lorebook.none_linked")),
      this.#books.map((book) => this.#row(book)),
    )
    const linked = new Set(this.#books.map((book) => book.id))
    const others = this.#library.filter((book) => !linked.has(book.id))
    replace(this.#adding, this.#isChangeable && others.length > 0 && this.#adder(others))
    if (focused) this.#list.querySelector(`[data-book-id="${focused.dataset.bookId}"] button`)?.focus()
  }

  #row(book) {
    const isInLibrary = this.#library.some((it) => it.id === book.id)
    const words = el(
      "span",
      { class: "member__names" },
      bdi(book.name, "member__name truncate"),
      el("span", { class: "member__note" }, t("lorebook.n_entries", { n: book.n_entries })),
    )
    return el(
      "li",
      {
        class: "member lore-row",
        "data-book-id": String(book.id),
        on: { keydown: (event) => this.#onKey(event, book.id) },
      },
      isInLibrary ? this.#opener(book, words) : el("div", { class: "member__button" }, words),
      this.#isChangeable &&
        iconButton("close", t("lorebook.unlink", { name: book.name }), {
          click: () => this.#put(this.#books.filter((it) => it.id !== book.id)),
        }),
      this.#isChangeable && this.#books.length > 1 && grip(),
    )
  }

  #opener(book, words) {
    const click = async () => {
      await openLorebookDialog(this.#parts, book.id)
      this.#onChanged()
      this.refresh()
    }
    const keys = this.#isChangeable ? MOVES.join(" ") : null
    return el(
      "button",
      { class: "member__button", type: "button", "aria-keyshortcuts": keys, on: { click } },
      words,
    )
  }

  #adder(others) {
    const label = t("lorebook.choose_for", { place: this.#target.title })
    const choice = el(
      "select",
      { class: "input", "aria-label": label },
      others.map((book) => el("option", { value: String(book.id) }, book.name)),
    )
    const click = () => this.#put([...this.#books, { id: Number(choice.value) }])
    return [choice, button(t("add"), { click, "aria-label": t("lorebook.add_to", { place: this.#target.title }) })]
  }

  // Order

  #onKey(event, id) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key]
    if (!step || !event.altKey || !this.#isChangeable) return
    event.preventDefault()
    this.#move(id, this.#books.findIndex((it) => it.id === id) + step)
  }

  async #move(id, index) {
    const book = this.#books.find((it) => it.id === id)
    const others = this.#books.filter((it) => it.id !== id)
    if (!book || index < 0 || index > others.length) return
    await this.#put(others.toSpliced(index, 0, book))
    const text = t("lorebook.moved", { name: book.name, n: index + 1 })
    this.#parts.announcer.append(el("p", {}, text))
    this.#list.querySelector(`[data-book-id="${id}"] button`)?.focus()
  }

  async #put(books) {
    await this.#try(async () => {
      this.#books = await this.#parts.lorebooks.link(this.#target, books)
    })
    this.#show()
    // The focused row or button was removed.
    if (document.activeElement === document.body)
      (this.#list.querySelector("button") ?? this.#adding.querySelector("select"))?.focus()
  }

  async #try(act) {
    try {
      await act()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }
}

// For pointers only; the keyboard moves a row with Alt and the arrow keys.
function grip() {
  return el("span", { class: "member__grip", title: t("member.drag"), "aria-hidden": "true" }, icon("grip"))
}
