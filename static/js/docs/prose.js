// The sentences of the document, which are written with a little Markdown: paragraphs, `code`, **bold**.
import { el } from "../base/dom.js"

const MARKS = /(`[^`]+`|\*\*[^*]+\*\*)/

export function prose(text) {
  return text.split(MARKS).map((part) => {
    if (part.startsWith("`")) return el("code", {}, part.slice(1, -1))
    if (part.startsWith("**")) return el("strong", {}, part.slice(2, -2))
    return part
  })
}

export function paragraphs(text, className) {
  return text
    .split(/\n\s*\n/)
    .filter((it) => it.trim() !== "")
    .map((it) => el("p", { class: className, lang: "en" }, prose(it)))
}
