// The model servers that run on the machine of the server, for selection.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"

export default class LocalServersView {
  node = el("div", { role: "status" })
  found = []
  #choices = null
  #marked = {}

  // `onChoose(server)` is called with the selected one.
  constructor(parts, onChoose) {
    this.#showStatus(t("provider.searching"))
    parts.providers.discover().then(
      (found) => this.#show(found, onChoose),
      // If discovery is not allowed, nothing is shown: an address can still be entered.
      () => replace(this.node),
    )
  }

  // Actions

  // Marks the server with this address.
  mark({ kind, base_url: baseUrl }) {
    this.#marked = { kind, base_url: baseUrl }
    for (const button of this.#choices?.children ?? []) {
      const isIt = button.dataset.kind === kind && button.dataset.url === baseUrl
      button.setAttribute("aria-pressed", String(isIt))
    }
  }

  // Private

  #show(found, onChoose) {
    this.found = found
    if (found.length === 0) return this.#showStatus(t("provider.no_local_servers"))
    this.#choices = el(
      "div",
      { class: "choices", role: "group", "aria-label": t("provider.presets") },
      found.map((server) => choice(server, onChoose)),
    )
    replace(this.node, el("p", { class: "field__label" }, t("provider.presets")), this.#choices)
    this.mark(this.#marked)
  }

  #showStatus(text) {
    replace(this.node, el("p", { class: "field__hint" }, text))
  }
}

function choice(server, onChoose) {
  const { name, kind, base_url: url, models } = server
  return el(
    "button",
    { class: "choice", type: "button", "data-kind": kind, "data-url": url, on: { click: () => onChoose(server) } },
    t("provider.local_server", { name, n: models.length }),
  )
}
