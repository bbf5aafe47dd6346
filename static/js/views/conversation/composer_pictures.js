// The pictures above the composer: a chip for each, with its description, progress, and a way to remove it.
import { bdi, el, icon, reconcile } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { MAX_PICTURES } from "../../models/conversation/pending_pictures.js"
import { PICTURE_TYPES } from "../../models/files/picture_file.js"
import { doesAnySee } from "../../models/providers/vision.js"
import { iconButton } from "../components/button.js"
import { explain } from "../components/error_messages.js"

export default class ComposerPictures {
  node
  button
  #parts
  #conversationId
  #pending
  #list = el("ul", { class: "composer__picture-list" })
  #notice = el("p", { class: "composer__pictures-notice", role: "status" })
  #addresses = new Map()
  #stop

  // `onChange()` is called whenever a picture is added, removed or uploaded.
  constructor(parts, conversationId, onChange) {
    this.#parts = parts
    this.#conversationId = conversationId
    this.#pending = parts.pictures.of(conversationId)
    this.node = el("div", { class: "composer__pictures", role: "group", "aria-label": t("picture.group") }, this.#list, this.#notice)
    this.button = iconButton("image", t("picture.add"), { class: "composer__picture-button", click: () => this.#choose() })
    this.#stop = this.#pending.on("change", () => {
      this.#update()
      onChange()
    })
    this.#update()
  }

  get isEmpty() {
    return this.#pending.isEmpty
  }

  // Whether the message can be sent with these pictures.
  get isReady() {
    return this.#pending.isReady
  }

  // Accepts dropped and pasted pictures.
  mount() {
    this.#parts.pictures.onFiles = (files) => this.#add(files)
  }

  unmount() {
    this.#parts.pictures.onFiles = null
    this.#stop()
    for (const address of this.#addresses.values()) URL.revokeObjectURL(address)
  }

  // Removes the pictures, and returns those to send.
  take() {
    return this.#pending.take()
  }

  // Private

  #choose() {
    const input = el("input", { type: "file", accept: PICTURE_TYPES.join(","), multiple: true, hidden: true })
    input.addEventListener("change", () => {
      this.#add([...input.files])
      input.remove()
    })
    input.addEventListener("cancel", () => input.remove())
    document.body.append(input)
    input.click()
  }

  #add(files) {
    const nLeftOut = this.#parts.pictures.add(this.#conversationId, files)
    if (nLeftOut > 0) this.#parts.toasts.show(t("picture.too_many", { n: MAX_PICTURES }))
  }

  #update() {
    const { entries } = this.#pending
    this.node.hidden = entries.length === 0
    this.button.disabled = entries.length >= MAX_PICTURES
    const { openRoster, providers } = this.#parts.store
    const isDescribed = entries.length > 0 && !doesAnySee(openRoster.characters, providers)
    this.#notice.hidden = !isDescribed
    this.#notice.textContent = isDescribed ? t("picture.described") : ""
    const kept = new Set(entries.map(({ key }) => key))
    for (const [key, address] of this.#addresses) {
      if (kept.has(key)) continue
      URL.revokeObjectURL(address)
      this.#addresses.delete(key)
    }
    reconcile(this.#list, entries, {
      key: (entry) => String(entry.key),
      create: (entry) => this.#chip(entry),
      update: (node, entry) => this.#updateChip(node, entry),
    })
  }

  #chip({ key, file, alt }) {
    const address = URL.createObjectURL(file)
    this.#addresses.set(key, address)
    const { pictures } = this.#parts
    const describe = (event) => pictures.describe(this.#conversationId, key, event.target.value)
    const field = el("input", {
      class: "composer__picture-alt",
      type: "text",
      maxlength: "1000",
      placeholder: t("picture.alt"),
      "aria-label": t("picture.alt_of", { name: file.name }),
      value: alt,
      on: { input: describe },
    })
    const remove = () => pictures.remove(this.#conversationId, key)
    const retry = () => pictures.retry(this.#conversationId, key)
    return el(
      "li",
      { class: "composer__picture" },
      el("img", { class: "composer__picture-image", src: address, alt: "" }),
      el(
        "div",
        { class: "composer__picture-about" },
        field,
        el("progress", { class: "composer__picture-progress", max: "1", "aria-label": t("picture.uploading", { name: file.name }) }),
        el("p", { class: "composer__picture-problem", role: "alert" }),
      ),
      iconButton("retry", t("retry"), { class: "composer__picture-retry", look: "small", click: retry }),
      iconButton("close", t("picture.remove", { name: file.name }), { look: "small", click: remove }),
    )
  }

  #updateChip(node, { state, progress, error, file }) {
    node.dataset.state = state
    const bar = node.querySelector("progress")
    bar.hidden = state !== "uploading"
    bar.value = progress
    node.querySelector(".composer__picture-retry").hidden = state !== "failed"
    const problem = node.querySelector(".composer__picture-problem")
    problem.hidden = state !== "failed"
    const text = state === "failed" ? explain(error) : ""
    if (problem.dataset.text === text) return
    problem.dataset.text = text
    problem.replaceChildren(...(text === "" ? [] : [icon("alert"), bdi(file.name), el("span", {}, text)]))
  }
}
