// The banner that is shown while the connection to the server is lost.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button } from "../components/button.js"

export default class Banner {
  #root
  #parts
  #node
  #wasOpen = false

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  mount() {
    const retry = button(t("banner.retry"), { look: "quiet small", click: () => this.#parts.reconnect() })
    this.#node = el(
      "div",
      { class: "banner", role: "status", hidden: true },
      el("span", {}, t("banner.reconnecting")),
      retry,
    )
    this.#root.append(this.#node)
    this.#update()
    const stop = this.#parts.store.on("connection", () => (this.#node.isConnected ? this.#update() : stop()))
  }

  #update() {
    const { connection } = this.#parts.store
    this.#wasOpen ||= connection === "open" || connection === "waiting"
    this.#node.hidden = connection === "open" || !this.#wasOpen
  }
}
