// The memories that the prompt of a run contained, and those that came close.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { hundredths } from "../../base/numbers.js"
import { readMemorySettings } from "../../models/memories/memory_settings.js"
import { bestScore, splitRecalled } from "../../models/memories/recall_reason.js"
import { explain } from "../components/error_messages.js"
import { sourceLinks } from "../memories/memory_row.js"
import { reasonOf } from "../memories/memory_text.js"

// Returns a section that loads them. `openSource(memory)` opens the source of one.
export function recalledMemories({ memories, store }, runId, openSource) {
  const { threshold } = readMemorySettings(store.openSpace?.settings)
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
        close.length > 0 && [title(t("prompt.recalled_close")), rows(close, openSource, threshold)],
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

// `threshold` is that of the space if the memories were not recalled, otherwise null.
function rows(all, openSource, threshold = null) {
  return el(
    "ul",
    { class: "memory-list" },
    all.map((it) => row(it, openSource, threshold)),
  )
}

function row({ memory, because, ...scores }, openSource, threshold) {
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
    threshold !== null && el("p", { class: "memory__facts" }, omissionOf(scores, threshold)),
    memory && sourceLinks(memory, { act: openSource }),
  )
}

// The settings may have changed since the prompt was sent.
function omissionOf(scores, threshold) {
  return bestScore(scores) < threshold ? t("prompt.below_threshold") : t("prompt.over_budget")
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
