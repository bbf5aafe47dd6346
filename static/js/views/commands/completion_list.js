// The list above the composer that completes what is being written at the caret: the members after `@`, and
// the commands after `/`. Arrow keys, Enter, Tab, Esc, pointer and touch.
import { el, replace } from "../../base/dom.js"

const MOST = 30
const NONE = -1
const LIST_ID = "completion-list"

export default class CompletionList {
  node
  #field
  #sources
  #onPick
  #list = el("ul", { class: "completions__list", id: LIST_ID, role: "listbox" })
  #note = el("p", { class: "completions__note" })
  #options = []
  #active = 0
  // The source of the shown options, and what they complete.
  #source = null
  #query = null
  // What was being completed when the list was closed with Esc. It stays closed while this is continued.
  #closed = null

  // Each source has `label` and `note` (or null), `queryAt(text, caret)`, which returns `{ start, query }` or
  // null, `options(query)`, `isComplete(options, query)`, `content(option)` with the nodes and
  // `data(option)` with the attributes of an option, and `insert(text, query, option)`, which returns
  // `{ text, caret }`. `onPick(text, caret)` changes the text of the field.
  constructor(field, sources, onPick) {
    this.#field = field
    this.#sources = sources
    this.#onPick = onPick
    field.setAttribute("aria-autocomplete", "list")
    field.setAttribute("aria-controls", LIST_ID)
    this.node = el("div", { class: "completions", hidden: true }, this.#list, this.#note)
  }

  get isOpen() {
    return !this.node.hidden
  }

  // Actions

  // Opens, updates or closes the list for the text before the caret.
  update() {
    const { value, selectionStart, selectionEnd } = this.#field
    const isCaret = selectionStart === selectionEnd
    const found = isCaret && this.#sources.map((source) => ({ source, query: source.queryAt(value, selectionStart) }))
    const { source, query } = (found || []).find((it) => it.query !== null) ?? {}
    if (!continues(query, this.#closed)) this.#closed = null
    const options = query && !this.#closed ? source.options(query.query) : []
    // What was just completed needs no list.
    if (options.length === 0 || source.isComplete(options, query.query)) return this.close()
    const isSame = this.#query?.start === query.start && this.#query.query === query.query && this.isOpen
    if (!isSame) this.#show(source, query, options)
  }

  // Shows all options of a source in place of what was written. None is active, so that Enter picks none.
  showAll(source, query) {
    this.#show(source, query, source.options(""), NONE)
  }

  close() {
    this.node.hidden = true
    this.#query = null
    this.#field.removeAttribute("aria-activedescendant")
  }

  // Returns whether the list has handled the key.
  onKey(event) {
    if (!this.isOpen || event.isComposing || event.keyCode === 229) return false
    const { length } = this.#options
    if (event.key === "ArrowDown") this.#activate((this.#active + 1) % length)
    else if (event.key === "ArrowUp") this.#activate((Math.max(this.#active, 0) + length - 1) % length)
    else if (["Enter", "Tab"].includes(event.key) && !event.shiftKey && this.#active !== NONE)
      this.#pick(this.#options[this.#active])
    else if (event.key === "Escape") {
      this.#closed = this.#query
      this.close()
    } else return false
    event.preventDefault()
    event.stopPropagation()
    return true
  }

  // Private

  #show(source, query, options, active = 0) {
    this.#source = source
    this.#query = query
    this.#options = options.slice(0, MOST)
    this.#list.setAttribute("aria-label", source.label)
    replace(
      this.#list,
      this.#options.map((option, index) => this.#option(option, index)),
    )
    replace(this.#note, source.note)
    this.#note.hidden = !source.note
    this.node.hidden = false
    this.#activate(active)
  }

  #option(option, index) {
    const on = {
      // The field keeps the focus.
      pointerdown: (event) => event.preventDefault(),
      click: () => this.#pick(option),
    }
    const attributes = { class: "completions__option", id: `${LIST_ID}-${index}`, role: "option" }
    return el("li", { ...attributes, ...this.#source.data(option), on }, this.#source.content(option))
  }

  #activate(index) {
    this.#active = index
    ;[...this.#list.children].forEach((node, at) => {
      node.setAttribute("aria-selected", String(at === index))
      if (at === index) node.scrollIntoView({ block: "nearest" })
    })
    if (index === NONE) this.#field.removeAttribute("aria-activedescendant")
    else this.#field.setAttribute("aria-activedescendant", `${LIST_ID}-${index}`)
  }

  #pick(option) {
    const { text, caret } = this.#source.insert(this.#field.value, this.#query, option)
    this.close()
    this.#onPick(text, caret)
  }
}

function continues(query, closed) {
  return query && closed && query.start === closed.start && query.query.startsWith(closed.query)
}
