// The memories that the prompt of a run contained, and those that came close.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { hundredths } from "../../base/numbers.js"
import { bestScore, splitRecalled } from "../../models/memories/recall_reason.js"
import { explain } from "../components/error_messages.js"
import { sourceLinks } from "../memories/memory_row.js"
import { reasonOf } from "../memories/memory_text.js"

// Returns a section that loads them. `openSource(memory)` opens the source of one.
export function recalledMemories({ memories }, runId, openSource) {
  const section = el("section", { "aria-busy": "true" }, title(t("prompt.recalled")), note(t("loading")))
  load()
  return section

  async function load() {
    try {
      const { recalled, close } = splitRecalled(await memories.recalledBy(runId))
      replace(
        section,
        title(t("prompt.recalled")),
        recalled.length > 0 ? rows(recalled, openSource) : note(t("prompt.recalled_none")),
        close.length > 0 && [title(t("prompt.recalled_close")), rows(close, openSource)],
      )
    } catch (error) {
      replace(section, title(t("prompt.recalled")), note(explain(error)))
    }
    section.removeAttribute("aria-busy")
  }
}

function title(text) {
  return el("h3", { class: "panel__title" }, text)
}

function note(text) {
  return el("p", { class: "field__hint" }, text)
}

function rows(all, openSource) {
  return el(
    "ul",
    { class: "memory-list" },
    all.map((it) => row(it, openSource)),
  )
}

function row({ memory, because, ...scores }, openSource) {
  const content = memory
    ? el("p", { class: "memory__content", dir: "auto" }, memory.content)
    : el("p", { class: "memory__content soft" }, t("prompt.memory_deleted"))
  const reason = reasonOf(because)
  return el(
    "li",
    { class: "memory" },
    content,
    reason && el("p", { class: "memory__facts" }, bdi(reason)),
    el("p", { class: "memory__facts" }, scoresOf(scores)),
    memory && sourceLinks(memory, { act: openSource }),
  )
}

function scoresOf(scores) {
  const { vector_score: vector, text_score: text } = scores
  const parts = [
    t("memory.score", { score: hundredths(bestScore(scores)) }),
    vector !== null && t("memory.vector_score", { score: hundredths(vector) }),
    t("memory.text_score", { score: hundredths(text) }),
  ]
  return parts.filter(Boolean).join(" · ")
}
