// The list of people and characters that opens with `@` above the composer. Arrow keys, Enter, Tab, Esc,
// pointer and touch.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { insertMention, matching, mentionedIds, queryAt } from "../../models/conversation/mentions.js"
import { avatar } from "../components/avatar.js"

const MOST = 30
const LIST_ID = "mention-list"

export default class MentionList {
  #field
  #members
  #onPick
  #node = el("ul", { class: "mentions", id: LIST_ID, role: "listbox", "aria-label": t("mentions.label"), hidden: true })
  #options = []
  #active = 0
  #query = null
  // The start of a mention whose list was closed with Esc.
  #closedAt = null
  // The chosen members, with the names under which they were inserted.
  #chosen = []

  // `members()` returns those that can be mentioned; `onPick(text, caret)` changes the text of the field.
  constructor(field, { members, onPick }) {
    this.#field = field
    this.#members = members
    this.#onPick = onPick
    field.setAttribute("aria-autocomplete", "list")
    field.setAttribute("aria-controls", LIST_ID)
  }

  get node() {
    return this.#node
  }
  get isOpen() {
    return !this.#node.hidden
  }

  // Returns the ids of the chosen members whose name is in the text.
  idsIn(text) {
    return mentionedIds(text, this.#chosen)
  }

  // Actions

  // Opens, updates or closes the list for the text before the caret.
  update() {
    const { value, selectionStart, selectionEnd } = this.#field
    const query = selectionStart === selectionEnd ? queryAt(value, selectionStart) : null
    if (query?.start !== this.#closedAt) this.#closedAt = null
    const members = query && this.#closedAt === null ? matching(this.#members(), query.query).slice(0, MOST) : []
    // A name that was just completed needs no list.
    const isComplete = members.length === 1 && members[0].display_name === query.query
    if (members.length === 0 || isComplete) return this.close()
    const isSame = this.#query?.start === query.start && this.#query.query === query.query && this.isOpen
    this.#query = query
    if (!isSame) this.#show(members)
  }

  close() {
    this.#node.hidden = true
    this.#query = null
    this.#field.removeAttribute("aria-activedescendant")
  }

  // Forgets the chosen members, because the message was sent.
  reset() {
    this.#chosen = []
    this.close()
  }

  // Returns whether the list has handled the key.
  onKey(event) {
    if (!this.isOpen || event.isComposing || event.keyCode === 229) return false
    const { length } = this.#options
    if (event.key === "ArrowDown") this.#activate((this.#active + 1) % length)
    else if (event.key === "ArrowUp") this.#activate((this.#active + length - 1) % length)
    else if ((event.key === "Enter" && !event.shiftKey) || (event.key === "Tab" && !event.shiftKey))
      this.#pick(this.#options[this.#active])
    else if (event.key === "Escape") {
      this.#closedAt = this.#query.start
      this.close()
    } else return false
    event.preventDefault()
    event.stopPropagation()
    return true
  }

  // Private

  #show(members) {
    this.#options = members
    replace(
      this.#node,
      members.map((member, index) => this.#option(member, index)),
    )
    this.#node.hidden = false
    this.#activate(0)
  }

  #option(member, index) {
    const { display_name: name, avatar_url: url, kind } = member
    const on = {
      // The field keeps the focus.
      pointerdown: (event) => event.preventDefault(),
      click: () => this.#pick(member),
    }
    return el(
      "li",
      { class: "mentions__option", id: `${LIST_ID}-${index}`, role: "option", "data-member": member.id, on },
      avatar({ name, url, size: "small" }),
      bdi(name, "truncate grow"),
      el("span", { class: "mentions__kind" }, kind === "character" ? t("mentions.character") : t("mentions.person")),
    )
  }

  #activate(index) {
    this.#active = index
    ;[...this.#node.children].forEach((node, at) => {
      node.setAttribute("aria-selected", String(at === index))
      if (at === index) node.scrollIntoView({ block: "nearest" })
    })
    this.#field.setAttribute("aria-activedescendant", `${LIST_ID}-${index}`)
  }

  #pick({ id, display_name: name }) {
    const { text, caret } = insertMention(this.#field.value, this.#query, name)
    this.#chosen.push({ id, name })
    this.close()
    this.#onPick(text, caret)
  }
}
