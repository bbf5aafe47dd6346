// Accepts files that are dropped on the page, pasted or selected, and passes each to its importer; pictures
// go to the next message of the open conversation. Nothing is stored before the importer has asked.
import { el, icon } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { inspectFile, importerFor } from "../../models/files/dropped_file.js"
import { isCardPicture, isPicture } from "../../models/files/picture_file.js"
import { loadImporters } from "../on_demand.js"

export default class FileDrop {
  #parts
  #overlay = null
  #isOpening = false
  #queue = []

  constructor(parts) {
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    document.addEventListener("dragenter", this.#onOver)
    document.addEventListener("dragover", this.#onOver)
    document.addEventListener("dragleave", this.#onLeave)
    document.addEventListener("drop", this.#onDrop)
    document.addEventListener("paste", this.#onPaste)
  }

  unmount() {
    document.removeEventListener("dragenter", this.#onOver)
    document.removeEventListener("dragover", this.#onOver)
    document.removeEventListener("dragleave", this.#onLeave)
    document.removeEventListener("drop", this.#onDrop)
    document.removeEventListener("paste", this.#onPaste)
    this.#hideOverlay()
  }

  // Actions

  // Opens the browser's file dialog. `accept` is that of an input.
  choose({ accept = "", multiple = true } = {}) {
    const input = el("input", { type: "file", accept, multiple, hidden: true, "aria-label": t("drop.choose") })
    input.addEventListener("change", () => {
      this.offer([...input.files])
      input.remove()
    })
    input.addEventListener("cancel", () => input.remove())
    document.body.append(input)
    input.click()
  }

  // Opens one file after the other, because each may show a dialog.
  async offer(files) {
    this.#queue.push(...files)
    if (this.#isOpening) return
    this.#isOpening = true
    while (this.#queue.length > 0) await this.#open(this.#queue.shift())
    this.#isOpening = false
  }

  // Private

  // An importer is `{ name, looksLike(file, head, json), open(file, json) }`. `open` resolves when the
  // file is done; `json` is its content if it is a JSON document, else null.
  async #open(file) {
    const { toasts } = this.#parts
    try {
      const known = await loadImporters(this.#parts)
      if (!known) return
      const look = await inspectFile(file)
      const importer = importerFor(known, file, look)
      if (importer) await importer.open(file, look.json)
      else toasts.show(t("drop.unknown", { name: file.name }))
    } catch (error) {
      toasts.error(error)
    }
  }

  #onOver = (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return
    event.preventDefault()
    event.dataTransfer.dropEffect = "copy"
    this.#showOverlay()
  }

  // `relatedTarget` is null when the pointer leaves the page.
  #onLeave = (event) => {
    if (event.relatedTarget === null) this.#hideOverlay()
  }

  #onDrop = (event) => {
    this.#hideOverlay()
    const files = [...(event.dataTransfer?.files ?? [])]
    if (files.length === 0) return
    event.preventDefault()
    this.#receive(files)
  }

  #onPaste = (event) => {
    const files = [...(event.clipboardData?.files ?? [])]
    if (files.length === 0) return
    event.preventDefault()
    this.#receive(files)
  }

  // Pictures that are no cards become pictures of the next message, unless a dialog is open.
  async #receive(files) {
    const { onFiles } = this.#parts.pictures
    if (!onFiles || document.querySelector("dialog[open]")) return this.offer(files)
    const isForMessage = await Promise.all(files.map(async (it) => isPicture(it) && !(await isCardPicture(it))))
    const pictures = files.filter((_, index) => isForMessage[index])
    if (pictures.length > 0) onFiles(pictures)
    await this.offer(files.filter((_, index) => !isForMessage[index]))
  }

  #showOverlay() {
    if (this.#overlay) return
    this.#overlay = el(
      "div",
      { class: "drop", popover: "manual" },
      el("p", { class: "drop__text" }, icon("plus"), t("drop.here")),
    )
    document.body.append(this.#overlay)
    this.#overlay.showPopover() // above a dialog that is open
  }

  #hideOverlay() {
    this.#overlay?.remove()
    this.#overlay = null
  }
}
