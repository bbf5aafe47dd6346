// The search field and the filters of the list of memories.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { debounce } from "../../base/timing.js"
import { KINDS } from "../../models/memories/memory.js"
import { field, input, select } from "../components/form.js"

const PAUSE_MS = 250

export default class MemoryFilters {
  #search = input({ type: "search", maxlength: "2000", autocomplete: "off", "aria-label": t("memory.search") })
  #whose = select([], "")
  #kind = select([["", t("memory.kind_any")], ...KINDS.map((it) => [it, t(`memory_kind.${it}`)])], "")
  node

  // `onChange` is called when the filters have changed, and after a pause in typing.
  constructor(onChange) {
    this.#search.placeholder = t("memory.search")
    this.#search.addEventListener("input", debounce(onChange, PAUSE_MS))
    for (const it of [this.#whose, this.#kind]) it.addEventListener("change", onChange)
    this.node = el(
      "div",
      { class: "memory-filters", role: "search" },
      this.#search,
      field({ label: t("memory.whose"), control: this.#whose }).node,
      field({ label: t("memory.kind"), control: this.#kind }).node,
    )
    this.showMembers([], null)
  }

  // Lists the characters and the user; the selection is kept.
  showMembers(characters, member) {
    const chosen = this.#whose.value
    const options = [
      ["", t("memory.whose_any")],
      ...characters.map((it) => [String(it.id), it.display_name]),
      ...(member ? [[String(member.id), t("memory.whose_mine")]] : []),
    ]
    replace(
      this.#whose,
      options.map(([value, label]) => el("option", { value, selected: value === chosen }, label)),
    )
  }

  get value() {
    return { q: this.#search.value.trim(), membership_id: this.#whose.value, kind: this.#kind.value }
  }

  get isEmpty() {
    return Object.values(this.value).every((it) => it === "")
  }

  focus() {
    this.#search.focus()
  }
}
