// The older versions of the running summary, each with its differences from the one in use.
import { bdi, el, reconcile, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { fullText } from "../../models/summaries/summary.js"
import { wordDiff } from "../../models/summaries/word_diff.js"
import { button } from "../components/button.js"
import { originText } from "./summary_text.js"

const TAGS = { same: "span", removed: "del", added: "ins" }

export default class VersionList {
  #parts
  #restore
  #list = el("div", {})
  #versions = new Map()
  #running = null
  #mayChange = false
  node

  // `restore(version)` makes a version the current one.
  constructor(parts, { restore }) {
    this.#parts = parts
    this.#restore = restore
    const title = el("h3", { class: "panel__title" }, t("summary.versions"))
    this.node = el("section", { hidden: true, "data-section": "versions" }, title, this.#list)
  }

  show({ versions, running, mayChange }) {
    this.#versions = new Map(versions.map((it) => [String(it.id), it]))
    this.#running = running
    this.#mayChange = mayChange
    this.node.hidden = versions.length === 0
    reconcile(this.#list, versions, {
      key: (version) => String(version.id),
      create: () => this.#create(),
      update: (node, version) => this.#update(node, version),
    })
  }

  // Private

  #create() {
    const head = el("summary", { class: "block__summary" })
    const node = el("details", { class: "block" }, head, el("div", { class: "summary-item" }))
    // The differences are computed when they are first needed.
    node.addEventListener("toggle", () => this.#fill(node))
    return node
  }

  #update(node, version) {
    replace(
      node.querySelector("summary"),
      el("span", {}, t("summary.version", { version: version.version })),
      el("span", { class: "soft grow truncate" }, bdi(originText(this.#parts.store, version))),
    )
    this.#fill(node)
  }

  // Fills an open version again only if what it shows has changed; the focus stays on its button.
  #fill(node) {
    const version = this.#versions.get(node.dataset.key)
    const body = node.querySelector(".summary-item")
    const signature = JSON.stringify([this.#running?.id ?? null, this.#mayChange])
    if (!node.open || !version || body.dataset.signature === signature) return
    body.dataset.signature = signature
    const hasFocus = body.contains(document.activeElement)
    const restore = button(t("summary.restore"), { look: "small", click: () => this.#restore(version) })
    replace(body, this.#difference(version), this.#mayChange && el("div", { class: "form__actions" }, restore))
    if (hasFocus && this.#mayChange) restore.focus()
  }

  #difference(version) {
    const parts = wordDiff(fullText(version), this.#running ? fullText(this.#running) : "")
    const isSame = parts.every(({ kind }) => kind === "same")
    const text = parts.map(({ kind, text: words }) => el(TAGS[kind], {}, words))
    return [
      el("p", { class: "field__hint" }, isSame ? t("summary.no_diff") : t("summary.diff")),
      el("div", { class: "summary__diff", dir: "auto" }, text),
    ]
  }
}
