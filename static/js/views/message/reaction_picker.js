// The picker of a reaction: the emoji used last, and all others with a search. Arrow keys move, Enter
// chooses.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { storage } from "../../base/storage.js"
import { findEmoji } from "../../models/message/emoji.js"
import { recentEmoji, rememberEmoji } from "../../models/message/reactions.js"
import { openDialog } from "../components/dialog.js"
import { field, input } from "../components/form.js"

const COLUMN_KEYS = { ArrowRight: 1, ArrowLeft: -1 }

// Lets the user choose an emoji and calls `onChoose(emoji)`.
export async function openReactionPicker(parts, onChoose) {
  const store = storage("localStorage")
  const emoji = await openDialog({ title: t("reaction.title"), content: (close) => picker(store, close) })
  if (!emoji) return
  rememberEmoji(store, emoji)
  await onChoose(emoji)
}

function picker(store, close) {
  const recent = el("div", { class: "emoji-grid", role: "group", "aria-label": t("reaction.recent") })
  const all = el("div", { class: "emoji-grid", role: "group", "aria-label": t("reaction.all") })
  const status = el("p", { class: "emoji-grid__status", role: "status" })
  const control = input({ type: "search", maxlength: "60", autocomplete: "off", autofocus: true })
  const show = () => {
    const found = findEmoji(control.value)
    const isSearch = control.value.trim() !== ""
    recent.hidden = isSearch
    replace(all, found.map(choice))
    status.textContent = isSearch && found.length === 0 ? t("search.nothing") : ""
  }
  const choice = (emoji) => el("button", { class: "emoji-grid__choice", type: "button", on: { click: () => close(emoji) } }, emoji)
  control.addEventListener("input", show)
  control.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return
    event.preventDefault()
    const first = all.firstElementChild
    if (first && control.value.trim() !== "") close(first.textContent)
  })
  replace(recent, recentEmoji(store).map(choice))
  show()
  const node = el("div", { class: "emoji-picker" }, field({ label: t("reaction.search"), control }).node, recent, status, all)
  node.addEventListener("keydown", moveInGrid)
  return node
}

// Moves the focus within a grid.
function moveInGrid(event) {
  const grid = event.target.closest(".emoji-grid")
  if (!grid) return
  const choices = [...grid.children]
  const at = choices.indexOf(event.target)
  const perRow = Math.max(1, choices.filter((it) => it.offsetTop === choices[0].offsetTop).length)
  const step = { ...COLUMN_KEYS, ArrowDown: perRow, ArrowUp: -perRow }[event.key]
  if (!step) return
  event.preventDefault()
  choices[at + step]?.focus()
}
