// The search dialog: messages that the user can read, newest first. Arrow keys select, Enter opens.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { shortTime } from "../../base/time.js"
import { paths } from "../../router.js"
import { button } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { check, field, input } from "../components/form.js"

const PAUSE_MS = 120
const PAGE = 30

export async function openSearch(parts) {
  parts.shell.closeDrawer()
  const hit = await openDialog({
    title: t("search.title"),
    wide: true,
    content: (close) => new SearchView(parts, close).node,
  })
  if (hit) parts.router.go(paths.message(hit.conversation_id, hit.message_id))
}

class SearchView {
  #parts
  #close
  #hits = []
  #chosen = -1
  #timer = null
  #request = 0

  constructor(parts, close) {
    this.#parts = parts
    this.#close = close
    this.#build()
  }

  #build() {
    this.list = el("ul", { class: "search__list", role: "listbox", id: "search-hits", "aria-label": t("search.results") })
    this.status = el("p", { class: "search__status", role: "status" })
    this.more = button(t("search.more"), { look: "quiet small", hidden: true, click: () => this.#search(true) })
    const control = input({
      type: "search",
      maxlength: "200",
      autofocus: true,
      autocomplete: "off",
      role: "combobox",
      "aria-expanded": "true",
      "aria-controls": "search-hits",
      "aria-autocomplete": "list",
      placeholder: t("search.placeholder"),
    })
    this.control = control
    control.addEventListener("input", () => this.#searchSoon())
    control.addEventListener("keydown", (event) => this.#onKey(event))
    const { openSpace: space } = this.#parts.store
    this.here = space && check({ label: t("search.only_here", { name: space.name }) })
    this.here?.control.addEventListener("change", () => this.#search())
    this.node = el(
      "div",
      { class: "search" },
      field({ label: t("search.label"), control }).node,
      this.here?.node,
      this.status,
      this.list,
      this.more,
    )
  }

  #searchSoon() {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#search(), PAUSE_MS)
  }

  // Results of an outdated request are dropped.
  async #search(isMore = false) {
    const request = ++this.#request
    const q = this.control.value.trim()
    if (!q) return this.#show([], "", false)
    const before = isMore ? this.#hits.at(-1)?.message_id : null
    const spaceId = this.here?.control.checked ? this.#parts.store.openSpace?.id : null
    try {
      const { data, has_more: hasMore } = await this.#parts.files.search({ q, space_id: spaceId, before, limit: PAGE })
      if (request !== this.#request) return
      const hits = isMore ? [...this.#hits, ...data] : data
      this.#show(hits, hits.length ? t("search.found", { n: hits.length }) : t("search.nothing"), hasMore, isMore)
    } catch (error) {
      if (request === this.#request) this.#parts.toasts.error(error)
    }
  }

  #show(hits, word, hasMore, isMore = false) {
    this.#hits = hits
    this.status.textContent = word
    this.more.hidden = !hasMore
    replace(
      this.list,
      hits.map((hit, index) => this.#row(hit, index)),
    )
    this.#choose(isMore ? this.#chosen : hits.length > 0 ? 0 : -1)
  }

  #row(hit, index) {
    const location = hit.conversation_title || hit.space_name
    return el(
      "li",
      {
        class: "search__hit",
        role: "option",
        id: `search-hit-${index}`,
        on: { click: () => this.#close(hit), pointermove: () => this.#choose(index) },
      },
      el(
        "span",
        { class: "search__where" },
        el("bdi", { class: "search__author" }, hit.author_name),
        el("bdi", { class: "truncate grow" }, location),
        el("time", { datetime: hit.created_at }, shortTime(Date.parse(hit.created_at))),
      ),
      el("span", { class: "search__text", dir: "auto" }, marked(hit)),
    )
  }

  #choose(index) {
    this.#chosen = index
    for (const [at, row] of [...this.list.children].entries())
      row.setAttribute("aria-selected", String(at === index))
    const row = this.list.children[index]
    if (row) this.control.setAttribute("aria-activedescendant", row.id)
    else this.control.removeAttribute("aria-activedescendant")
    return row
  }

  #onKey(event) {
    if (event.isComposing) return
    if (event.key === "Enter") {
      event.preventDefault()
      const hit = this.#hits[this.#chosen]
      if (hit) this.#close(hit)
      return
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (!step || this.#hits.length === 0) return
    event.preventDefault()
    const n = this.#hits.length
    this.#choose((this.#chosen + step + n) % n)?.scrollIntoView({ block: "nearest" })
  }
}

// The snippet is plain text; `marks` are the positions of the matches.
function marked({ snippet, marks }) {
  const parts = []
  let at = 0
  for (const [from, to] of marks) {
    parts.push(snippet.slice(at, from), el("mark", {}, snippet.slice(from, to)))
    at = to
  }
  return [...parts, snippet.slice(at)]
}
