// The tool calls of a message, collapsed and labelled, always as plain text.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { toolCallsOf, toolName } from "../../models/characters/tools.js"

export default class ToolCallsView {
  node = el("div", { class: "reasoning", hidden: true })
  #shown = "[]"

  // Replaced only if they have changed, so that they stay open.
  update(message) {
    const calls = toolCallsOf(message)
    const signature = JSON.stringify(calls)
    if (signature === this.#shown) return
    this.#shown = signature
    this.node.hidden = calls.length === 0
    replace(this.node, calls.length > 0 && folded(calls))
  }
}

function folded(calls) {
  const names = [...new Set(calls.map((it) => toolName(it.tool)))].join(", ")
  const label = t("tools.used", { names })
  return el(
    "details",
    { "data-tools": calls.length },
    el("summary", { class: "reasoning__label" }, label),
    el("ul", { class: "tool-calls" }, calls.map(callNode)),
  )
}

function callNode({ tool, arguments: args, output, error, approved_by: by }) {
  return el(
    "li",
    { class: "tool-calls__call" },
    bdi(toolName(tool), "tool-calls__name"),
    by && el("span", {}, t("tools.approved_by", { name: by })),
    el("pre", { class: "tool-calls__text", dir: "auto", tabindex: "0" }, args),
    el("pre", { class: "tool-calls__text", dir: "auto", tabindex: "0" }, output ?? t("tools.failed", { error })),
  )
}
