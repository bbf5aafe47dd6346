// One memory of the list, with its actions.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { sourcesOf } from "../../models/memories/memory.js"
import { iconButton } from "../components/button.js"
import { paths } from "../../router.js"
import { historyOf, reasonOf, recalledText, subjectOf } from "./memory_text.js"

// `acts` are `edit`, `pin`, `remove`, and, in the list of the space, `openSource` and `openRecall`; each
// is called with the memory.
export function createMemoryRow() {
  return el("li", { class: "memory", tabindex: "-1" })
}

// Fills a row again only if what it shows has changed; the focus stays on the same action.
export function fillMemoryRow(node, memory, { store, mayChange, acts }) {
  const subject = subjectOf(store, memory)
  const recalled = recalledText(store, memory)
  const openRecall = may(store.openSpace?.my_role, "prompt") && memory.last_recall && acts.openRecall
  const signature = JSON.stringify([memory, subject, recalled, mayChange, Boolean(openRecall)])
  if (node.dataset.signature === signature) return
  node.dataset.signature = signature
  const focused = node.contains(document.activeElement) ? document.activeElement.dataset.act : null
  const id = `memory-${memory.id}`
  const reason = reasonOf(memory.because)
  replace(
    node,
    el("p", { class: "memory__content", id, dir: "auto" }, memory.content),
    el(
      "p",
      { class: "memory__facts" },
      memory.pinned && [el("span", { class: "memory__pinned" }, icon("pin"), t("memory.pinned")), " · "],
      bdi(subject),
    ),
    el("p", { class: "memory__facts" }, `${historyOf(memory)} · `, openRecall ? recallButton(recalled) : bdi(recalled)),
    reason && el("p", { class: "memory__facts" }, bdi(reason)),
    buttonsOf(memory, { mayChange, acts, describedBy: id }),
  )
  if (focused) node.querySelector(`[data-act="${focused}"]`)?.focus()

  function recallButton(text) {
    const props = { class: "memory__recall", type: "button", title: t("memory.open_recall"), "data-act": "recall" }
    return el("button", { ...props, "aria-describedby": id, on: { click: () => openRecall(memory) } }, bdi(text))
  }
}

function buttonsOf(memory, { mayChange, acts, describedBy }) {
  const act = (look, label, name) =>
    iconButton(look, label, { "data-act": name, "aria-describedby": describedBy, click: () => acts[name](memory) })
  const pinLabel = memory.pinned ? t("memory.unpin") : t("memory.pin")
  const nodes = [
    acts.openSource && sourceLinks(memory, { act: acts.openSource, describedBy }),
    mayChange && [
      act("edit", t("memory.edit"), "edit"),
      act("pin", pinLabel, "pin"),
      act("trash", t("memory.delete"), "remove"),
    ],
  ].filter(Boolean)
  return nodes.length > 0 && el("div", { class: "memory__buttons" }, nodes)
}

// Returns links to the messages from which a memory was made; null if there are none. The message is looked
// up when the user clicks the link; the address of the link is that of the conversation.
export function sourceLinks(memory, { act, describedBy = null }) {
  const links = sourcesOf(memory).map(({ seq, memory: source }) => {
    const click = (event) => {
      event.preventDefault()
      act(source)
    }
    const props = { class: "memory__source", "data-act": `source-${seq}`, "aria-describedby": describedBy, on: { click } }
    return el("a", { href: paths.conversation(memory.conversation_id), ...props }, t("memory.source", { n: seq }))
  })
  return links.length > 0 ? el("div", { class: "memory__sources" }, links) : null
}
