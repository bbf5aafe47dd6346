// The search field and the filters of the list of memories.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { debounce } from "../../base/timing.js"
import { KINDS, ORIGINS } from "../../models/memories/memory.js"
import { field, input, select } from "../components/form.js"
import { conversationName } from "../conversation/conversation_name.js"

const PAUSE_MS = 250

export default class MemoryFilters {
  #search = input({ type: "search", maxlength: "2000", autocomplete: "off", "aria-label": t("memory.search") })
  // The filters by their parameters in the API.
  #selects = {
    membership_id: select([], ""),
    kind: select([["", t("memory.kind_any")], ...KINDS.map((it) => [it, t(`memory_kind.${it}`)])], ""),
    about: select([], ""),
    conversation_id: select([], ""),
    origin: select([["", t("memory.origin_any")], ...ORIGINS.map((it) => [it, t(`memory_origin.${it}`)])], ""),
    pinned: select([["", t("memory.pinned_any")], ["true", t("memory.pinned")], ["false", t("memory.not_pinned")]], ""),
  }
  node

  // `onChange` is called when the filters have changed, and after a pause in typing.
  constructor(onChange) {
    this.#search.placeholder = t("memory.search")
    this.#search.addEventListener("input", debounce(onChange, PAUSE_MS))
    for (const it of Object.values(this.#selects)) it.addEventListener("change", onChange)
    const labelled = (name, label) => field({ label, control: this.#selects[name] }).node
    const long = [labelled("origin", t("memory.origin")), labelled("conversation_id", t("memory.conversation"))]
    for (const it of long) it.classList.add("memory-filters__long")
    const short = [labelled("about", t("memory.about_label")), labelled("pinned", t("memory.pinned"))]
    const more = el("div", { class: "memory-filters" }, short, long)
    this.node = el(
      "div",
      { class: "memory-filters", role: "search" },
      this.#search,
      labelled("membership_id", t("memory.whose")),
      labelled("kind", t("memory.kind")),
      el("details", { class: "note__more" }, el("summary", {}, t("memory.more_filters")), more),
    )
  }

  // Lists the members and conversations of the open space; the selection is kept.
  showSpace(store) {
    const { openSpace: space, openRoster, myMembership: me } = store
    const named = (members) => members.map((it) => [String(it.id), it.display_name])
    const mine = me ? [[String(me.id), t("memory.whose_mine")]] : []
    this.#offer("membership_id", [["", t("memory.whose_any")], ...named(openRoster.characters), ...mine])
    this.#offer("about", [["", t("memory.about_any")], ...named(openRoster.active)])
    const titles = store.conversations(space.id).map((it) => [String(it.id), conversationName(it, space)])
    this.#offer("conversation_id", [["", t("memory.conversation_any")], ...titles])
  }

  get value() {
    const chosen = Object.entries(this.#selects).map(([name, it]) => [name, it.value])
    return { q: this.#search.value.trim(), ...Object.fromEntries(chosen) }
  }

  get isEmpty() {
    return Object.values(this.value).every((it) => it === "")
  }

  focus() {
    this.#search.focus()
  }

  // Private

  // Options are replaced only if they have changed, so that an open list stays open.
  #offer(name, options) {
    const it = this.#selects[name]
    const signature = JSON.stringify(options)
    if (it.dataset.options === signature) return
    it.dataset.options = signature
    const chosen = it.value
    replace(
      it,
      options.map(([value, label]) => el("option", { value, selected: value === chosen }, label)),
    )
  }
}
