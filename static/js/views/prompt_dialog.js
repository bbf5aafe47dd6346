// A prompt, block by block: what it says, what it costs, what did not fit.
import { el, icon } from "../base/dom.js"
import { has, t } from "../base/i18n.js"
import { openDialog } from "./dialog.js"

// `load()` answers the document of the API.
export async function showPrompt({ toasts }, load) {
  try {
    const prompt = await load()
    await openDialog({ title: t("prompt.title"), wide: true, content: () => contentOf(prompt) })
  } catch (error) {
    toasts.error(error)
  }
}

function contentOf(prompt) {
  const {
    model,
    blocks = [],
    messages = [],
    total_tokens: total,
    limit_tokens: limit,
    dropped_messages: dropped,
  } = prompt
  return [
    el(
      "p",
      { class: "dialog__lead" },
      t("prompt.summary", { model: model ?? "–", total: total ?? 0, limit: limit ?? 0 }),
    ),
    limit > 0 && meter(total / limit),
    dropped > 0 && el("p", { class: "outcome" }, icon("alert"), t("prompt.dropped", { n: dropped })),
    blocks.length > 0 &&
      el("section", {}, el("h3", { class: "panel__title" }, t("prompt.blocks")), blocks.map(block)),
    el("section", {}, el("h3", { class: "panel__title" }, t("prompt.messages")), messages.map(message)),
  ]
}

function meter(share) {
  const fill = el("div", { class: "meter__fill" })
  fill.style.transform = `scaleX(${Math.min(1, share)})`
  return el(
    "div",
    { class: "meter", role: "img", "aria-label": t("prompt.used", { percent: Math.round(share * 100) }) },
    fill,
  )
}

function block({ kind, label, tokens, text, dropped }) {
  // What was said is labelled with who said it, everything else with what it is.
  const name = has(`prompt.kind_${kind}`) ? t(`prompt.kind_${kind}`) : label || kind
  return fold(
    name,
    dropped ? t("prompt.block_dropped") : t("prompt.tokens", { n: tokens ?? 0 }),
    text ?? "",
    dropped ? "block--dropped" : "",
  )
}

function message({ role, name, content }) {
  const side = has(`prompt.role_${role}`) ? t(`prompt.role_${role}`) : role
  return fold(
    name ? `${side} · ${name}` : side,
    "",
    typeof content === "string" ? content : JSON.stringify(content, null, 2),
  )
}

function fold(title, note, text, className = "") {
  return el(
    "details",
    { class: `block ${className}` },
    el(
      "summary",
      { class: "block__summary" },
      el("span", { class: "grow truncate" }, title),
      el("span", { class: "soft" }, note),
    ),
    el("div", { class: "block__text", tabindex: "0" }, text),
  )
}
