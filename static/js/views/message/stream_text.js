// Streamed text as plain paragraphs with line breaks and emphasis. Finished paragraphs are not rendered
// again, so that a chunk costs the same at any length.
import { el } from "../../base/dom.js"
import { lines, splitParagraphs } from "../../models/message/emphasis.js"

export default class StreamText {
  #root
  #shown = []

  constructor(root) {
    this.#root = root
  }

  update(text) {
    const paragraphs = splitParagraphs(text)
    paragraphs.forEach((paragraph, index) => {
      if (this.#shown[index] === paragraph) return
      const node = paragraphNode(paragraph)
      const old = this.#root.children[index]
      if (old) old.replaceWith(node)
      else this.#root.append(node)
    })
    while (this.#root.children.length > paragraphs.length) this.#root.lastElementChild.remove()
    this.#shown = paragraphs
  }
}

export function paragraphNode(paragraph) {
  const node = el("p")
  lines(paragraph).forEach((line, index) => {
    if (index > 0) node.append(el("br"))
    for (const { text, mark } of line) node.append(mark ? el(mark, {}, text) : text)
  })
  return node
}
