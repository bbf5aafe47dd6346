// The prompt inspector: blocks with their tokens, lore, and what did not fit.
import { bdi, el, icon } from "../../base/dom.js"
import { has, t } from "../../base/i18n.js"
import { sentencesOf } from "../../models/files/import_warnings.js"
import { openDialog } from "../components/dialog.js"
import { openSource } from "../memories/memory_source.js"
import { recalledMemories } from "./recalled_memories.js"

// `load()` returns the prompt document of the API.
export async function showPrompt({ toasts }, load) {
  try {
    await open(t("prompt.title"), await load())
  } catch (error) {
    toasts.error(error)
  }
}

// Shows the prompt of a run and its memories. Only the newest prompts of a conversation are stored.
export async function showPromptOfRun(parts, runId) {
  const { conversation, toasts } = parts
  try {
    const prompt = await conversation.promptOfRun(runId)
    const memory = await open(t("prompt.of_run"), prompt, (close) => recalledMemories(parts, runId, close))
    if (memory) await openSource(parts, memory)
  } catch (error) {
    if (error.status === 404) toasts.show(t("prompt.not_kept"))
    else toasts.error(error)
  }
}

// Shows the prompt of the run that wrote the shown text.
export async function showPromptOfMessage(parts, message) {
  const { conversation, toasts } = parts
  try {
    const runId = await conversation.runOf(message)
    if (runId) await showPromptOfRun(parts, runId)
    else toasts.show(t("prompt.no_run"))
  } catch (error) {
    toasts.error(error)
  }
}

// `after(close)` returns what is shown below the blocks.
function open(title, prompt, after = () => null) {
  return openDialog({ title, wide: true, content: (close) => contentOf(prompt, after(close)) })
}

function contentOf(prompt, after) {
  const {
    model,
    blocks = [],
    messages = [],
    total_tokens: total,
    limit_tokens: limit,
    dropped_messages: dropped,
    cache,
    lore = [],
    lore_dropped: noRoom = [],
    role_handling: roles,
    template,
    text,
    stop = {},
    scripts = [],
  } = prompt
  const warnings = sentencesOf(prompt)
  return [
    el(
      "p",
      { class: "dialog__lead" },
      t("prompt.summary", { model: model ?? "–", total: total ?? 0, limit: limit ?? 0 }),
    ),
    roles && el("p", { class: "soft" }, t("prompt.roles", { name: t(`role_handling.${roles}`) })),
    template && el("p", { class: "soft" }, t("prompt.template", { name: template })),
    limit > 0 && meter(total / limit),
    dropped > 0 && el("p", { class: "outcome" }, icon("alert"), t("prompt.dropped", { n: dropped })),
    cache && el("p", { class: "soft" }, cacheText(cache)),
    blocks.length > 0 &&
      el("section", {}, el("h3", { class: "panel__title" }, t("prompt.blocks")), blocks.map(block)),
    after,
    entries(t("prompt.lore"), lore),
    entries(t("prompt.lore_dropped"), noRoom),
    scripts.length > 0 && scriptsOf(scripts),
    warnings.length > 0 &&
      el(
        "section",
        {},
        el("h3", { class: "panel__title" }, t("prompt.warnings")),
        warnings.map((text) => el("p", { class: "outcome" }, icon("alert"), bdi(text))),
      ),
    stopStrings(stop),
    template ? finalText(text) : sentMessages(messages),
  ]
}

// States how much a provider with a prompt cache need not process again.
function cacheText({ equal_tokens: equal, total_tokens: total }) {
  const percent = total > 0 ? Math.min(100, Math.round((100 * equal) / total)) : 0
  return t("prompt.cache", { percent, equal, total })
}

function sentMessages(messages) {
  return el("section", {}, el("h3", { class: "panel__title" }, t("prompt.messages")), messages.map(message))
}

// Shows the text of a text completion.
function finalText(text) {
  return el(
    "section",
    {},
    el("h3", { class: "panel__title" }, t("prompt.text")),
    text === null ? el("p", { class: "soft" }, t("prompt.text_withheld")) : collapsible(t("prompt.text_whole"), "", text),
  )
}

// Lists the texts that end the reply; those that the server applies alone are marked.
function stopStrings({ sent = [], local = [] }) {
  if (sent.length + local.length === 0) return null
  const row = (text, note) =>
    el(
      "li",
      { class: "block__entry" },
      el("code", { class: "grow truncate" }, bdi(JSON.stringify(text))),
      el("span", { class: "soft" }, note),
    )
  return el(
    "section",
    {},
    el("h3", { class: "panel__title" }, t("prompt.stop")),
    el(
      "ul",
      { class: "block__list" },
      sent.map((it) => row(it, t("prompt.stop_sent"))),
      local.map((it) => row(it, t("prompt.stop_local"))),
    ),
  )
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

// Lists entries with the reason of their activation.
function entries(title, all) {
  if (all.length === 0) return null
  const row = ({ name, book, because }) =>
    el(
      "li",
      { class: "block__entry" },
      el("span", { class: "grow truncate", title: book }, bdi(name || t("prompt.lore_withheld"))),
      el("span", { class: "soft" }, bdi(reason(because))),
    )
  return el("section", {}, el("h3", { class: "panel__title" }, title), el("ul", { class: "block__list" }, all.map(row)))
}

// Lists the regex scripts, and what each did to the texts of the prompt.
function scriptsOf(scripts) {
  const row = ({ name, changed, error }) =>
    el(
      "li",
      { class: "block__entry" },
      el("span", { class: "grow truncate" }, bdi(name || t("regex.withheld"))),
      el("span", { class: "soft" }, outcomeOf(changed, error)),
    )
  return el(
    "section",
    {},
    el("h3", { class: "panel__title" }, t("regex.in_prompt")),
    el("ul", { class: "block__list" }, scripts.map(row)),
  )
}

function outcomeOf(changed, error) {
  if (error) return t("regex.error", { reason: error })
  return t(changed ? "regex.changed" : "regex.not_changed")
}

function reason(because) {
  const [kind, ...rest] = because.split(": ")
  const key = rest.join(": ")
  return has(`prompt.reason_${kind}`) ? t(`prompt.reason_${kind}`, { key }) : because
}

// Blocks of these kinds have names of their own.
const NAMED = ["entry", "lore", "depth_prompt"]

function block(shown) {
  const { kind, label, tokens, text, dropped, withheld, is_changed: isChanged, n_facts_left_out: nLeftOut, pictures = [] } = shown
  // Messages are labelled with their author, all other blocks with their kind.
  const what = has(`prompt.kind_${kind}`) ? t(`prompt.kind_${kind}`) : label || kind
  const name = NAMED.includes(kind) && label ? t("prompt.named", { kind: what, name: label }) : what
  const notes = [
    dropped ? t("prompt.block_dropped") : t("prompt.tokens", { n: tokens ?? 0 }),
    nLeftOut > 0 && t("prompt.facts_left_out", { n: nLeftOut }),
    isChanged && t("prompt.changed"),
    ...pictures.map(({ sent, tokens: cost }) =>
      sent ? t("prompt.picture_sent", { n: cost }) : t("prompt.picture_described"),
    ),
  ]
  return collapsible(
    name,
    notes.filter(Boolean).join(" · "),
    shownText(text, { withheld, isChanged }),
    dropped || withheld ? "block--dropped" : "",
  )
}

function shownText(text, { withheld, isChanged }) {
  if (withheld) return t("prompt.withheld")
  return isChanged && !text ? t("prompt.gone") : (text ?? "")
}

function message({ role, name, content }) {
  const side = has(`prompt.role_${role}`) ? t(`prompt.role_${role}`) : role
  return collapsible(
    name ? `${side} · ${name}` : side,
    "",
    typeof content === "string" ? content : JSON.stringify(content, null, 2),
  )
}

function collapsible(title, note, text, className = "") {
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
