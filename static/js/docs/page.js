// The API reference: a list of sections, a search, and the operations of each section.
import { el, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { operationView } from "./operation_view.js"
import { paragraphs } from "./prose.js"

export default class Page {
  #root
  #reference
  #search
  #count
  #nav
  #sections

  constructor(root, reference) {
    this.#root = root
    this.#reference = reference
  }

  // Lifecycle

  mount() {
    this.#search = el("input", {
      class: "input docs__search",
      type: "search",
      id: "search",
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": t("docs.search"),
      placeholder: t("docs.search_hint"),
      on: { input: this.#show },
    })
    this.#count = el("p", { class: "docs__count", role: "status" })
    this.#nav = el("nav", { class: "docs__nav", "aria-label": t("docs.sections") })
    this.#sections = el("main", { class: "docs__sections" })
    replace(this.#root, this.#head(), el("div", { class: "docs__columns" }, this.#nav, this.#sections))
    document.addEventListener("keydown", this.#onKey)
    window.addEventListener("hashchange", this.#follow)
    this.#show()
    this.#follow()
  }

  unmount() {
    document.removeEventListener("keydown", this.#onKey)
    window.removeEventListener("hashchange", this.#follow)
  }

  // Private

  #head() {
    return el(
      "header",
      { class: "docs__head" },
      el("h1", { class: "docs__title" }, t("docs.title", { name: this.#reference.title })),
      el(
        "p",
        { class: "docs__links" },
        el("a", { href: "/" }, t("docs.home")),
        el("a", { href: "/openapi.json" }, t("docs.source")),
      ),
      this.#search,
      this.#count,
    )
  }

  #show = () => {
    const words = this.#search.value
    const sections = this.#reference.sections(words)
    const n = sections.reduce((sum, section) => sum + section.operations.length, 0)
    this.#count.textContent = n === 0 ? t("docs.nothing") : t("docs.found", { n })
    replace(
      this.#nav,
      el(
        "ul",
        { class: "docs__list" },
        sections.map((section) => el("li", {}, sectionLink(section))),
      ),
    )
    replace(
      this.#sections,
      words.trim() === "" && el("div", { class: "docs__about" }, paragraphs(this.#reference.about)),
      sections.map((section) => this.#section(section)),
    )
  }

  #section({ name, about, operations }) {
    return el(
      "section",
      { class: "docs__section", "aria-labelledby": `room-${name}` },
      el("h2", { class: "docs__name", id: `room-${name}`, tabindex: "-1" }, name),
      el("p", { class: "docs__description", lang: "en" }, about),
      operations.map((operation) => operationView(operation, this.#reference)),
    )
  }

  // Opens the operation of the address, also if the search has filtered it out.
  #follow = () => {
    const id = decodeURIComponent(location.hash.slice(1))
    if (id === "") return
    if (!document.getElementById(id) && this.#search.value !== "") {
      this.#search.value = ""
      this.#show()
    }
    const found = document.getElementById(id)
    if (!found) return
    if (found.tagName === "DETAILS") found.open = true
    found.scrollIntoView({ block: "start" })
    const target = found.querySelector("summary") ?? found
    target.focus({ preventScroll: true })
  }

  // `/` focuses the search, Escape clears it.
  #onKey = (event) => {
    const isWriting = event.target === this.#search
    if (event.key === "/" && !isWriting && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault()
      this.#search.focus()
    } else if (event.key === "Escape" && isWriting && this.#search.value !== "") {
      event.preventDefault()
      this.#search.value = ""
      this.#show()
    }
  }
}

function sectionLink({ name, operations }) {
  return el(
    "a",
    { class: "docs__link", href: `#room-${name}` },
    el("span", {}, name),
    el("span", { class: "docs__number" }, String(operations.length)),
  )
}
