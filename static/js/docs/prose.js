// Renders the descriptions of the document, which use a subset of Markdown: paragraphs, `code`,
// **bold**.
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
